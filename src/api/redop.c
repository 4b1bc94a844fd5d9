/*
 * redop.c - operators a user makes.
 */
#include "api/check.h"

ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar,
	ncclDataType_t datatype, ncclScalarResidence_t residence, ncclComm_t comm)
{
	const char *function = "RedOpCreatePreMulSum";
	int handle;
	enum err e = check_comm(comm_of(comm), function);

	if (!e)
		e = check_pointer(op, function, "op");
	if (!e)
		e = check_pointer(scalar, function, "scalar");
	if (!e && (unsigned)datatype >= ncclNumTypes)
		e = err_set(ERR_ARGUMENT, "%s: invalid type %d", function, (int)datatype);
	if (!e && (unsigned)residence > ncclScalarHostImmediate)
		e = err_set(ERR_ARGUMENT, "%s: invalid residence %d", function,
			(int)residence);
	if (!e)
		e = comm_redop_create(comm_of(comm), scalar, (enum dtype)datatype,
			residence == ncclScalarHostImmediate, &handle);
	if (!e)
		*op = (ncclRedOp_t)handle;
	return result_of(e);
}
WEAK_TWIN(ncclRedOpCreatePreMulSum);

ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
	enum err e;

	if ((int)op >= 0 && (int)op < ncclNumOps)
		return result_of(err_set(
			ERR_ARGUMENT, "RedOpDestroy: operator %d is built in", (int)op));
	if ((int)op < 0)
		return result_of(err_set(
			ERR_ARGUMENT, "RedOpDestroy: %d is no operator", (int)op));
	e = check_handle(comm_of(comm), "RedOpDestroy");
	if (!e)
		e = comm_redop_destroy(comm_of(comm), (int)op);
	return result_of(e);
}
WEAK_TWIN(ncclRedOpDestroy);
