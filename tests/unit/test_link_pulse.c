/* A pulse stops when its process ends, in whatever way, and not before. */
#include "link/pulse.h"

#include <signal.h>
#include <sys/mman.h>

#include "child.h"

enum { PULSES = 1500 };

static struct pulse *pulses; /* shared with the children */

static void wait_stopped(const struct pulse *pulse)
{
	/* the kernel marks it while the process ends, which has been waited for */
	TRUE(pulse_has_stopped(pulse));
}

static void hold_and(const struct child *parent, char how)
{
	char go;

	EQ(pulse_hold(&pulses[0]), OK);
	child_say(parent, &how, 1);
	child_hear(parent, &go, 1);
	if (how == 'e')
		execl("/bin/true", "true", (char *)NULL);
	if (how == 's')
		raise(SIGKILL);
	_exit(0);
}

static void hold_exit(const struct child *parent)
{
	hold_and(parent, 'x');
}

static void hold_exec(const struct child *parent)
{
	hold_and(parent, 'e');
}

static void hold_killed(const struct child *parent)
{
	hold_and(parent, 's');
}

static void ends(void (*body)(const struct child *parent))
{
	struct child child = child_start(body);
	char word;
	int status;

	child_hear(&child, &word, 1);
	TRUE(!pulse_has_stopped(&pulses[0]));
	child_say(&child, &word, 1);
	EQ(waitpid(child.pid, &status, 0), child.pid);
	wait_stopped(&pulses[0]);
	close(child.in);
	close(child.out);
	memset(pulses, 0, sizeof(*pulses));
}

/* The holder's own child outlives it and does not keep the pulse going. */
static void hold_and_fork(const struct child *parent)
{
	pid_t pid;

	EQ(pulse_hold(&pulses[0]), OK);
	pid = fork();
	if (!pid) {
		usleep(500000);
		_exit(0);
	}
	child_say(parent, &pid, sizeof(pid));
	_exit(0);
}

static void forked(void)
{
	struct child child = child_start(hold_and_fork);
	pid_t pid;

	child_hear(&child, &pid, sizeof(pid));
	child_join(&child);
	EQ(kill(pid, 0), 0);
	wait_stopped(&pulses[0]);
	memset(pulses, 0, sizeof(*pulses));
}

/* More than the kernel walks for one thread; some were dropped before. */
static void hold_many(const struct child *parent)
{
	char word = 0;

	for (int i = 0; i < PULSES; i++)
		EQ(pulse_hold(&pulses[i]), OK);
	for (int i = 0; i < PULSES; i += 3)
		pulse_drop(&pulses[i]);
	child_say(parent, &word, 1);
	raise(SIGKILL);
}

static void many(void)
{
	struct child child = child_start(hold_many);
	char word;
	int status;

	child_hear(&child, &word, 1);
	EQ(waitpid(child.pid, &status, 0), child.pid);
	for (int i = 0; i < PULSES; i++)
		EQ(pulse_has_stopped(&pulses[i]), i % 3 != 0);
	close(child.in);
	close(child.out);
}

/* Held again and again in one process: no thread is left behind. */
static void again(void)
{
	struct pulse mine[3] = {0};

	for (int i = 0; i < 100; i++) {
		for (int j = 0; j < 3; j++)
			EQ(pulse_hold(&mine[j]), OK);
		for (int j = 0; j < 3; j++) {
			TRUE(!pulse_has_stopped(&mine[j]));
			pulse_drop(&mine[(j + i) % 3]);
		}
	}
}

int main(void)
{
	pulses = mmap(NULL, PULSES * sizeof(*pulses), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	TRUE(pulses != MAP_FAILED);
	ends(hold_exit);
	ends(hold_exec);
	ends(hold_killed);
	forked();
	many();
	again();
	return 0;
}
