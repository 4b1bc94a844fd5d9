#include "interpose.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "detour.h"
#include "nccl.h"

#define SEEN __attribute__((visibility("default")))

/* glibc's own, under names that nobody takes over */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
extern void __libc_free(void *memory);

static _Thread_local bool inside;
static atomic_int left[2]; /* by kind: calls until the one that fails; 0: none will */
static char *struck_name;
static atomic_int *sends;

static bool strikes(enum interpose_kind kind, const char *name)
{
	if (!inside || atomic_load(&left[kind]) <= 0 ||
		atomic_fetch_sub(&left[kind], 1) != 1)
		return false;
	strncpy(struck_name, name, 63);
	return true;
}

void interpose_arm(enum interpose_kind kind, int number, char *struck)
{
	struck_name = struck;
	atomic_store(&left[kind], number);
}

void interpose_disarm(void)
{
	atomic_store(&left[INTERPOSE_ALLOCATIONS], 0);
	atomic_store(&left[INTERPOSE_CALLS], 0);
}

void interpose_inside(bool is_inside)
{
	inside = is_inside;
}

void interpose_count_sends(atomic_int *counter)
{
	sends = counter;
}

/* ---- allocations ---- */

static bool allocation_fails(const char *name)
{
	if (!strikes(INTERPOSE_ALLOCATIONS, name))
		return false;
	errno = ENOMEM;
	return true;
}

SEEN void *malloc(size_t bytes)
{
	return allocation_fails("malloc") ? NULL : __libc_malloc(bytes);
}

SEEN void *calloc(size_t count, size_t bytes)
{
	return allocation_fails("calloc") ? NULL : __libc_calloc(count, bytes);
}

SEEN void *realloc(void *memory, size_t bytes)
{
	return allocation_fails("realloc") ? NULL : __libc_realloc(memory, bytes);
}

SEEN void *aligned_alloc(size_t alignment, size_t bytes)
{
	return allocation_fails("aligned_alloc") ? NULL
						 : __libc_memalign(alignment, bytes);
}

/* ---- system calls ---- */

/* What stands behind each wrapper. */
static struct {
	__typeof__(&mmap) mmap;
	__typeof__(&memfd_create) memfd_create;
	__typeof__(&ftruncate) ftruncate;
	__typeof__(&socket) socket;
	__typeof__(&bind) bind;
	__typeof__(&accept4) accept4;
	__typeof__(&send) send;
	__typeof__(&recv) recv;
	__typeof__(&poll) poll;
	__typeof__(&setsockopt) setsockopt;
	__typeof__(&open) open;
	__typeof__(&fopen) fopen;
	__typeof__(&stat) stat;
	__typeof__(&fstat) fstat;
	__typeof__(&eventfd) eventfd;
	__typeof__(&madvise) madvise;
	__typeof__(&syscall) syscall;
	__typeof__(&getrlimit) getrlimit;
	__typeof__(&sched_getaffinity) sched_getaffinity;
	__typeof__(&process_vm_readv) process_vm_readv;
	__typeof__(&process_vm_writev) process_vm_writev;
	__typeof__(&pthread_create) pthread_create;
} real;

struct wrapper {
	const char *name;
	void *place; /* a member of `real` */
};

static void find(const struct wrapper *wrapper)
{
	void *function = dlsym(RTLD_NEXT, wrapper->name);

	memcpy(wrapper->place, &function, sizeof(function));
}

static void find_all(void)
{
	static const struct wrapper wrappers[] = {{"mmap", &real.mmap},
		{"memfd_create", &real.memfd_create}, {"ftruncate", &real.ftruncate},
		{"socket", &real.socket}, {"bind", &real.bind},
		{"accept4", &real.accept4}, {"send", &real.send}, {"recv", &real.recv},
		{"poll", &real.poll}, {"setsockopt", &real.setsockopt},
		{"open", &real.open}, {"fopen", &real.fopen}, {"stat", &real.stat},
		{"fstat", &real.fstat}, {"eventfd", &real.eventfd},
		{"madvise", &real.madvise}, {"syscall", &real.syscall},
		{"getrlimit", &real.getrlimit},
		{"sched_getaffinity", &real.sched_getaffinity},
		{"process_vm_readv", &real.process_vm_readv},
		{"process_vm_writev", &real.process_vm_writev},
		{"pthread_create", &real.pthread_create}};

	for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++)
		find(&wrappers[i]);
}

/* Before the constructors of libraries, which come here too. */
__attribute__((section(".preinit_array"), used)) static void (*const at_start)(
	void) = find_all;

static bool call_fails(const char *name, int error)
{
	if (!strikes(INTERPOSE_CALLS, name))
		return false;
	errno = error;
	return true;
}

SEEN void *mmap(void *at, size_t bytes, int access, int flags, int fd, off_t offset)
{
	return call_fails("mmap", ENOMEM)
		       ? MAP_FAILED
		       : real.mmap(at, bytes, access, flags, fd, offset);
}

SEEN int memfd_create(const char *name, unsigned flags)
{
	return call_fails("memfd_create", EMFILE) ? -1 : real.memfd_create(name, flags);
}

SEEN int ftruncate(int fd, off_t bytes)
{
	return call_fails("ftruncate", ENOSPC) ? -1 : real.ftruncate(fd, bytes);
}

SEEN int socket(int domain, int type, int protocol)
{
	return call_fails("socket", EMFILE) ? -1 : real.socket(domain, type, protocol);
}

SEEN int connect(int fd, const struct sockaddr *address, socklen_t bytes)
{
	return call_fails("connect", ENOMEM) ? -1 : detour_connect(fd, address, bytes);
}

SEEN int bind(int fd, const struct sockaddr *address, socklen_t bytes)
{
	return call_fails("bind", ENOMEM) ? -1 : real.bind(fd, address, bytes);
}

SEEN int listen(int fd, int backlog)
{
	return call_fails("listen", EOPNOTSUPP) ? -1 : detour_listen(fd, backlog);
}

SEEN int accept4(int fd, struct sockaddr *address, socklen_t *bytes, int flags)
{
	return call_fails("accept4", EMFILE) ? -1
					     : real.accept4(fd, address, bytes, flags);
}

SEEN ssize_t send(int fd, const void *from, size_t bytes, int flags)
{
	if (sends)
		atomic_fetch_add(sends, 1);
	return call_fails("send", ENOBUFS) ? -1 : real.send(fd, from, bytes, flags);
}

SEEN ssize_t recv(int fd, void *to, size_t bytes, int flags)
{
	return call_fails("recv", ENOMEM) ? -1 : real.recv(fd, to, bytes, flags);
}

SEEN int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	return call_fails("poll", ENOMEM) ? -1 : real.poll(fds, count, timeout_ms);
}

SEEN int setsockopt(int fd, int level, int name, const void *value, socklen_t bytes)
{
	return call_fails("setsockopt", ENOBUFS)
		       ? -1
		       : real.setsockopt(fd, level, name, value, bytes);
}

SEEN int open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list arguments;

	va_start(arguments, flags);
	if (flags & (O_CREAT | O_TMPFILE))
		mode = va_arg(arguments, mode_t);
	va_end(arguments);
	return call_fails("open", EMFILE) ? -1 : real.open(path, flags, mode);
}

SEEN FILE *fopen(const char *path, const char *mode)
{
	return call_fails("fopen", EMFILE) ? NULL : real.fopen(path, mode);
}

SEEN int stat(const char *path, struct stat *out)
{
	return call_fails("stat", ENOMEM) ? -1 : real.stat(path, out);
}

SEEN int fstat(int fd, struct stat *out)
{
	return call_fails("fstat", ENOMEM) ? -1 : real.fstat(fd, out);
}

SEEN int eventfd(unsigned value, int flags)
{
	return call_fails("eventfd", EMFILE) ? -1 : real.eventfd(value, flags);
}

SEEN int madvise(void *at, size_t bytes, int advice)
{
	return call_fails("madvise", ENOMEM) ? -1 : real.madvise(at, bytes, advice);
}

/* How often a waiting rank sleeps on a futex is chance, so these do not count. */
SEEN long syscall(long number, ...)
{
	long arguments[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		arguments[i] = va_arg(list, long);
	va_end(list);
	if (number != SYS_futex && call_fails("syscall", EMFILE))
		return -1;
	return real.syscall(number, arguments[0], arguments[1], arguments[2],
		arguments[3], arguments[4], arguments[5]);
}

SEEN int getrlimit(__rlimit_resource_t what, struct rlimit *out)
{
	return call_fails("getrlimit", EPERM) ? -1 : real.getrlimit(what, out);
}

SEEN int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
	return call_fails("sched_getaffinity", EPERM)
		       ? -1
		       : real.sched_getaffinity(pid, bytes, set);
}

/* Six parameters are the kernel's wish. */
SEEN ssize_t process_vm_readv(pid_t pid, const struct iovec *here, unsigned long count,
	const struct iovec *there, unsigned long there_count, unsigned long flags)
{
	return call_fails("process_vm_readv", ENOMEM)
		       ? -1
		       : real.process_vm_readv(
				 pid, here, count, there, there_count, flags);
}

SEEN ssize_t process_vm_writev(pid_t pid, const struct iovec *here, unsigned long count,
	const struct iovec *there, unsigned long there_count, unsigned long flags)
{
	return call_fails("process_vm_writev", ENOMEM)
		       ? -1
		       : real.process_vm_writev(
				 pid, here, count, there, there_count, flags);
}

/* ---- threads of the library ---- */

struct start {
	void *(*function)(void *);
	void *argument;
};

/* A thread that the victim's call started is the victim too. Its thread-local variables
 * come first: where those find no memory, the C library ends the process. */
static void *thread_main(void *argument)
{
	struct start start = *(struct start *)argument;

	__libc_free(argument);
	(void)ncclGetLastError(NULL);
	inside = true;
	return start.function(start.argument);
}

SEEN int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
	void *(*function)(void *), void *argument)
{
	struct start *start;
	int error;

	if (!inside)
		return real.pthread_create(thread, attributes, function, argument);
	if (strikes(INTERPOSE_CALLS, "pthread_create"))
		return EAGAIN;
	start = __libc_malloc(sizeof(*start));
	if (!start)
		return EAGAIN;
	*start = (struct start){function, argument};
	error = real.pthread_create(thread, attributes, thread_main, start);
	if (error)
		__libc_free(start);
	return error;
}
