/*
 * driver.h - NVIDIA's driver library, found at run time.
 *
 * Nothing is linked: a process that uses CUDA has loaded libcuda already, and one that
 * does not never needs it. The declarations are ours; names, order of arguments and
 * numbers are the driver's.
 */
#ifndef EXEC_CUDA_DRIVER_DRIVER_H
#define EXEC_CUDA_DRIVER_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct CUctx_st *cu_context;
typedef struct CUstream_st *cu_stream;
typedef struct CUevent_st *cu_event;
typedef struct CUmod_st *cu_module;
typedef struct CUfunc_st *cu_function;
typedef uint64_t cu_ptr; /* an address on the device */
typedef int cu_result;
typedef int cu_device;

enum {
	CU_OK = 0,
	CU_INVALID_VALUE = 1,
	CU_NOT_INITIALIZED = 3,
	CU_INVALID_CONTEXT = 201,
	CU_ALREADY_MAPPED = 208,
	CU_INVALID_HANDLE = 400,
	CU_NOT_READY = 600,
	CU_PEER_ACCESS_ALREADY = 704,
	CU_NOT_SUPPORTED = 801
};

/* The handle by which every thread means a stream of its own. */
#define CU_STREAM_PER_THREAD ((cu_stream)2)
static inline bool cuda_stream_is_own(cu_stream stream)
{
	return stream == CU_STREAM_PER_THREAD;
}

/* Of event_create. */
enum { CU_EVENT_NO_TIMING = 2 };

enum { CU_CAPTURE_GLOBAL = 0, CU_CAPTURE_THREAD_LOCAL = 1, CU_CAPTURE_RELAXED = 2 };

/* Device attributes. Do contexts of this process go through an MPS server? Drivers before
 * CUDA 12.4 do not know. */
enum {
	CU_DEVICE_MULTIPROCESSORS = 16,
	CU_DEVICE_MAJOR = 75, /* of its compute capability */
	CU_DEVICE_DMABUF = 124,
	CU_DEVICE_MPS_ENABLED = 133
};

/* Pointer attributes. */
enum {
	CU_POINTER_CONTEXT = 1,
	CU_POINTER_MEMORY_TYPE = 2,
	CU_POINTER_BUFFER_ID = 7,
	CU_POINTER_IS_MANAGED = 8,
	CU_POINTER_DEVICE_ORDINAL = 9,
	CU_POINTER_IS_IPC_CAPABLE = 10,
	CU_POINTER_RANGE_START = 11,
	CU_POINTER_RANGE_SIZE = 12,
	/* since CUDA 11.7 */
	CU_POINTER_HANDLE_TYPES = 14,
	CU_POINTER_IS_RDMA_CAPABLE = 15,
	CU_POINTER_POOL = 17,
	CU_POINTER_MAPPING_SIZE = 18,
	CU_POINTER_MAPPING_START = 19,
	CU_POINTER_BLOCK_ID = 20
};
enum { CU_MEMORY_HOST = 1, CU_MEMORY_DEVICE = 2 };

enum { CU_BLOCK_BYTES = 2 << 20 }; /* what the driver maps at a time */
struct cu_ipc_handle {
	char bytes[64];
};
enum { CU_IPC_LAZY_PEER = 1 }; /* the only flag of ipc_open, and it must be given */

/* Physical memory, and where it may be used from. */
typedef unsigned long long cu_physical;
enum { CU_RANGE_DMABUF = 1 }; /* of range_handle */
enum { CU_HANDLE_FD = 1, CU_LOCATION_DEVICE = 1, CU_ACCESS_READ_WRITE = 3 };
struct cu_access {
	int location_type, location_id;
	int access;
};

/* What the list `extra` of a launch is made of, where all arguments are one block. */
#define CU_LAUNCH_END	      ((void *)0)
#define CU_LAUNCH_BLOCK	      ((void *)1)
#define CU_LAUNCH_BLOCK_BYTES ((void *)2)

/* One stream memory operation; the driver's union is 48 bytes long. */
enum {
	CU_MEMOP_WAIT_32 = 1,
	CU_MEMOP_WRITE_32 = 2,
	CU_MEMOP_WAIT_64 = 4,
	CU_MEMOP_WRITE_64 = 5
};
enum { CU_WAIT_GEQ = 0, CU_WAIT_EQ = 1 };
struct cu_memop {
	int operation;
	int pad;
	cu_ptr address;
	uint64_t value; /* the low 32 bits for a 32-bit operation */
	unsigned flags;
	int pad2;
	cu_ptr alias;
	uint64_t pad3;
};
_Static_assert(sizeof(struct cu_memop) == 48, "as long as the driver's");

/* A copy by rows, as the driver wants it told. */
struct cu_copy_2d {
	size_t from_x, from_y;
	int from_type; /* CU_MEMORY_HOST .. */
	const void *from_host;
	cu_ptr from_device;
	void *from_array;
	size_t from_pitch;
	size_t to_x, to_y;
	int to_type;
	void *to_host;
	cu_ptr to_device;
	void *to_array;
	size_t to_pitch;
	size_t row_bytes, rows;
};
_Static_assert(sizeof(struct cu_copy_2d) == 128, "as long as the driver's");

/* Every function the library uses, without its prefix. */
struct cuda_driver {
	cu_result (*init)(unsigned flags);
	cu_result (*driver_version)(int *version);
	cu_result (*error_name)(cu_result result, const char **name);
	cu_result (*device_get)(cu_device *device, int ordinal);
	cu_result (*device_attribute)(int *value, int attribute, cu_device device);
	cu_result (*device_uuid)(char uuid[16], cu_device device);
	cu_result (*device_bus_id)(char *text, int bytes, cu_device device);
	cu_result (*context_get)(cu_context *context);
	cu_result (*context_set)(cu_context context);
	cu_result (*context_device)(cu_device *device);
	cu_result (*capture_mode)(int *mode);
	cu_result (*context_synchronize)(void);
	cu_result (*peer_access)(cu_context peer, unsigned flags);
	cu_result (*context_create)(
		cu_context *context, unsigned flags, cu_device device);
	cu_result (*context_destroy)(cu_context context);
	cu_result (*primary_retain)(cu_context *context, cu_device device);
	cu_result (*primary_release)(cu_device device);
	cu_result (*mem_alloc)(cu_ptr *ptr, size_t bytes);
	cu_result (*mem_free)(cu_ptr ptr);
	cu_result (*mem_host_alloc)(void **ptr, size_t bytes, unsigned flags);
	cu_result (*mem_host_free)(void *ptr);
	cu_result (*mem_host_register)(void *ptr, size_t bytes, unsigned flags);
	cu_result (*mem_host_unregister)(void *ptr);
	cu_result (*mem_host_device_pointer)(cu_ptr *device, void *host, unsigned flags);
	cu_result (*mem_address_range)(cu_ptr *base, size_t *bytes, cu_ptr ptr);
	cu_result (*memcpy_async)(cu_ptr to, cu_ptr from, size_t bytes, cu_stream stream);
	cu_result (*memcpy_2d_async)(const struct cu_copy_2d *copy, cu_stream stream);
	cu_result (*memset_async)(
		cu_ptr to, unsigned char value, size_t bytes, cu_stream stream);
	cu_result (*memcpy_to_device)(cu_ptr to, const void *from, size_t bytes);
	cu_result (*memcpy_from_device)(void *to, cu_ptr from, size_t bytes);
	cu_result (*memset_d8)(cu_ptr to, unsigned char value, size_t bytes);
	cu_result (*ipc_get)(struct cu_ipc_handle *handle, cu_ptr ptr);
	cu_result (*ipc_open)(cu_ptr *ptr, struct cu_ipc_handle handle, unsigned flags);
	cu_result (*ipc_close)(cu_ptr ptr);
	/* memory by descriptors: NULL in a driver that has none of it */
	cu_result (*physical_of)(cu_physical *physical, void *address);
	cu_result (*physical_export)(
		void *handle, cu_physical physical, int type, unsigned long long flags);
	cu_result (*physical_import)(cu_physical *physical, void *handle, int type);
	cu_result (*physical_release)(cu_physical physical);
	cu_result (*range_reserve)(cu_ptr *ptr, size_t bytes, size_t alignment,
		cu_ptr wanted, unsigned long long flags);
	cu_result (*range_free)(cu_ptr ptr, size_t bytes);
	cu_result (*range_map)(cu_ptr ptr, size_t bytes, size_t offset,
		cu_physical physical, unsigned long long flags);
	cu_result (*range_unmap)(cu_ptr ptr, size_t bytes);
	cu_result (*range_access)(
		cu_ptr ptr, size_t bytes, const struct cu_access *access, size_t count);
	/* NULL before CUDA 11.7 */
	cu_result (*range_handle)(void *handle, cu_ptr ptr, size_t bytes, int type,
		unsigned long long flags);
	cu_result (*pointer_attributes)(
		unsigned count, const int *attributes, void **values, cu_ptr ptr);
	cu_result (*stream_create)(cu_stream *stream, unsigned flags);
	/* NULL in a driver that has none of it */
	cu_result (*stream_create_priority)(
		cu_stream *stream, unsigned flags, int priority);
	cu_result (*priority_range)(int *least, int *greatest);
	cu_result (*stream_destroy)(cu_stream stream);
	cu_result (*stream_synchronize)(cu_stream stream);
	cu_result (*stream_query)(cu_stream stream);
	cu_result (*stream_wait_event)(cu_stream stream, cu_event event, unsigned flags);
	cu_result (*stream_is_capturing)(cu_stream stream, int *status);
	cu_result (*stream_id)(cu_stream stream, uint64_t *id); /* NULL before CUDA 12 */
	cu_result (*stream_batch_memop)(
		cu_stream stream, unsigned count, struct cu_memop *ops, unsigned flags);
	/* NULL in a driver that has none of it */
	cu_result (*launch_host)(
		cu_stream stream, void (*function)(void *argument), void *argument);
	cu_result (*event_create)(cu_event *event, unsigned flags);
	cu_result (*event_record)(cu_event event, cu_stream stream);
	cu_result (*event_destroy)(cu_event event);
	cu_result (*event_query)(cu_event event);
	cu_result (*module_load)(cu_module *module, const void *image);
	cu_result (*module_unload)(cu_module module);
	cu_result (*module_function)(
		cu_function *function, cu_module module, const char *name);
	cu_result (*launch)(cu_function function, unsigned grid_x, unsigned grid_y,
		unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
		unsigned shared_bytes, cu_stream stream, void **params, void **extra);
};

/* The driver of this process; NULL when it has not loaded libcuda (a process without
 * CUDA), or when the library is older than what we need (said once in the log). Cheap
 * after the first call that found it; one that found nothing looks again. */
const struct cuda_driver *cuda_driver(void);

/* While a thread of the process captures a stream the driver refuses calls that might
 * disturb it, from every thread, unless that one says that it knows what it does. `had`
 * takes what to give back to cuda_capture_restore(); NULL: for good. */
void cuda_capture_relax(const struct cuda_driver *driver, int *had);
void cuda_capture_restore(const struct cuda_driver *driver, int had);

/* A number that tells streams apart, also one that was destroyed from the next one with
 * the same handle. */
uint64_t cuda_stream_number(const struct cuda_driver *driver, cu_stream stream);

/* Copy from pinned host memory to the device's by a copy engine, however short it is:
 * plain copies that short are done by the GPU's processors, for which another process may
 * have to be switched out (design/03). */
cu_result cuda_copy_in(const struct cuda_driver *driver, cu_ptr to, const void *from,
	size_t bytes, cu_stream stream);

/* OK, or ERR_CUDA with a sentence: what was tried and the driver's name for the error. */
enum err cuda_check(cu_result result, const char *what);

#endif
