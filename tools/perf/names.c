#include "perf/names.h"

#include <string.h>

static const char *const type_names[ELEMENT_COUNT] = {"int8", "uint8", "int32", "uint32",
	"int64", "uint64", "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2"};
static const char *const op_names[DATA_OP_COUNT] = {
	"sum", "prod", "max", "min", "avg", "mulsum"};

const char *element_name(enum element type)
{
	return type_names[type];
}

const char *data_op_name(enum data_op op)
{
	return op_names[op];
}

enum element element_find(const char *name)
{
	if (!strcmp(name, "fp8_e4m3"))
		return ELEMENT_F8E4M3;
	if (!strcmp(name, "fp8_e5m2"))
		return ELEMENT_F8E5M2;
	for (int type = 0; type < ELEMENT_COUNT; type++)
		if (!strcmp(name, type_names[type]))
			return (enum element)type;
	return ELEMENT_COUNT;
}

enum data_op data_op_find(const char *name)
{
	for (int op = 0; op < DATA_OP_COUNT; op++)
		if (!strcmp(name, op_names[op]))
			return (enum data_op)op;
	return DATA_OP_COUNT;
}
