/*
 * param.c - the table of variables (base/param.h) for programs. A handle is the address
 * of one byte per row, so that a wrong one is recognised.
 */
#include "base/param.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "api/check.h"

static char handles[PARAM_COUNT];

static enum err handle_id(ncclParamHandle_t handle, const void *out, enum param *id)
{
	uintptr_t index = (uintptr_t)handle - (uintptr_t)handles;

	if (index >= PARAM_COUNT)
		return err_set(ERR_ARGUMENT, "ParamGet: %p is no handle of ncclParamBind",
			(void *)handle);
	if (!out)
		return err_set(ERR_ARGUMENT, "ParamGet: out is NULL");
	*id = (enum param)index;
	return OK;
}

static enum err find(const char *key, enum param *id)
{
	if (!key || !param_find(key, id))
		return err_set(
			ERR_ARGUMENT, "there is no variable %s", key ? key : "(null)");
	return OK;
}

ncclResult_t pncclParamBind(ncclParamHandle_t *out, const char *key)
{
	enum param id = PARAM_COUNT;
	enum err e = check_pointer(out, "ParamBind", "out");

	if (!e)
		e = find(key, &id);
	if (!e)
		*out = (ncclParamHandle_t)(void *)&handles[id];
	return result_of(e);
}
WEAK_TWIN(ncclParamBind);

/* The number behind a handle, if it is one and lies in the range of the caller's type. */
static enum err get_number(ncclParamHandle_t handle, const void *out, int64_t lowest,
	uint64_t highest, int64_t *value)
{
	enum param id = PARAM_COUNT;
	enum err e = handle_id(handle, out, &id);

	if (e)
		return e;
	if (param_info(id)->kind != PARAM_INT)
		return err_set(ERR_USAGE, "ParamGet: %s is text", param_info(id)->name);
	*value = param_int(id);
	if (*value < lowest || (*value > 0 && (uint64_t)*value > highest))
		return err_set(ERR_ARGUMENT,
			"ParamGet: %s is %" PRId64 ", out of the type's range",
			param_info(id)->name, *value);
	return OK;
}

ncclResult_t pncclParamGetI8(ncclParamHandle_t handle, int8_t *out)
{
	int64_t value;
	enum err e = get_number(handle, out, INT8_MIN, INT8_MAX, &value);

	if (!e)
		*out = (int8_t)value;
	return result_of(e);
}
WEAK_TWIN(ncclParamGetI8);

ncclResult_t pncclParamGetI16(ncclParamHandle_t handle, int16_t *out)
{
	int64_t value;
	enum err e = get_number(handle, out, INT16_MIN, INT16_MAX, &value);

	if (!e)
		*out = (int16_t)value;
	return result_of(e);
}
WEAK_TWIN(ncclParamGetI16);

ncclResult_t pncclParamGetI32(ncclParamHandle_t handle, int32_t *out)
{
	int64_t value;
	enum err e = get_number(handle, out, INT32_MIN, INT32_MAX, &value);

	if (!e)
		*out = (int32_t)value;
	return result_of(e);
}
WEAK_TWIN(ncclParamGetI32);

ncclResult_t pncclParamGetI64(ncclParamHandle_t handle, int64_t *out)
{
	int64_t value;
	enum err e = get_number(handle, out, INT64_MIN, INT64_MAX, &value);

	if (!e)
		*out = (int64_t)value;
	return result_of(e);
}
WEAK_TWIN(ncclParamGetI64);

ncclResult_t pncclParamGetU8(ncclParamHandle_t handle, uint8_t *out)
{
	int64_t value;
	enum err e = get_number(handle, out, 0, UINT8_MAX, &value);

	if (!e)
		*out = (uint8_t)value;
	return result_of(e);
}
WEAK_TWIN(ncclParamGetU8);

ncclResult_t pncclParamGetU16(ncclParamHandle_t handle, uint16_t *out)
{
	int64_t value;
	enum err e = get_number(handle, out, 0, UINT16_MAX, &value);

	if (!e)
		*out = (uint16_t)value;
	return result_of(e);
}
WEAK_TWIN(ncclParamGetU16);

ncclResult_t pncclParamGetU32(ncclParamHandle_t handle, uint32_t *out)
{
	int64_t value;
	enum err e = get_number(handle, out, 0, UINT32_MAX, &value);

	if (!e)
		*out = (uint32_t)value;
	return result_of(e);
}
WEAK_TWIN(ncclParamGetU32);

ncclResult_t pncclParamGetU64(ncclParamHandle_t handle, uint64_t *out)
{
	int64_t value;
	enum err e = get_number(handle, out, 0, UINT64_MAX, &value);

	if (!e)
		*out = (uint64_t)value;
	return result_of(e);
}
WEAK_TWIN(ncclParamGetU64);

/* A number's digits live in the thread until it asks again. */
static const char *text_of(enum param id)
{
	static _Thread_local char digits[24];

	if (param_info(id)->kind == PARAM_TEXT)
		return param_text(id);
	snprintf(digits, sizeof(digits), "%" PRId64, param_int(id));
	return digits;
}

ncclResult_t pncclParamGetStr(ncclParamHandle_t handle, const char **out)
{
	enum param id = PARAM_COUNT;
	enum err e = handle_id(handle, out, &id);

	if (!e)
		*out = text_of(id);
	return result_of(e);
}
WEAK_TWIN(ncclParamGetStr);

ncclResult_t pncclParamGet(ncclParamHandle_t handle, void *out, int maxLen, int *len)
{
	enum param id = PARAM_COUNT;
	int64_t number;
	const void *value = &number;
	size_t bytes = sizeof(number);
	enum err e = handle_id(handle, out, &id);

	if (!e)
		e = check_pointer(len, "ParamGet", "len");
	if (e)
		return result_of(e);
	if (param_info(id)->kind == PARAM_TEXT) {
		value = param_text(id) ? param_text(id) : "";
		bytes = strlen(value) + 1;
	} else {
		number = param_int(id);
	}
	*len = (int)bytes;
	if (maxLen < *len)
		return result_of(
			err_set(ERR_ARGUMENT, "ParamGet: %s needs %d bytes, not %d",
				param_info(id)->name, *len, maxLen));
	memcpy(out, value, bytes);
	return ncclSuccess;
}
WEAK_TWIN(ncclParamGet);

ncclResult_t pncclParamGetParameter(const char *key, const char **value, int *len)
{
	enum param id = PARAM_COUNT;
	enum err e = check_pointer(value, "ParamGetParameter", "value");

	if (!e)
		e = find(key, &id);
	if (e)
		return result_of(e);
	*value = text_of(id);
	if (len)
		*len = *value ? (int)strlen(*value) : 0;
	return ncclSuccess;
}
WEAK_TWIN(ncclParamGetParameter);

static const char *keys[PARAM_COUNT];

static void fill_keys(void)
{
	for (int id = 0; id < PARAM_COUNT; id++)
		keys[id] = param_info((enum param)id)->name;
}

ncclResult_t pncclParamGetAllParameterKeys(const char ***table, int *count)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	enum err e = check_pointer(table, "ParamGetAllParameterKeys", "table");

	if (!e)
		e = check_pointer(count, "ParamGetAllParameterKeys", "count");
	if (e)
		return result_of(e);
	pthread_once(&once, fill_keys);
	*table = keys;
	*count = PARAM_COUNT;
	return ncclSuccess;
}
WEAK_TWIN(ncclParamGetAllParameterKeys);

void pncclParamDumpAll(void)
{
	for (int i = 0; i < PARAM_COUNT; i++) {
		const struct param_info *info = param_info((enum param)i);
		const char *text = text_of((enum param)i);

		if (info->is_private && text)
			text = "(private)";
		printf("%s=%s\n", info->name, text ? text : "");
	}
}
WEAK_TWIN(ncclParamDumpAll);
