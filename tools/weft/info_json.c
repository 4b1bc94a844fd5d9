#include "weft/info_json.h"

#include <hwloc.h>

enum { CPUS_BYTES = 1024 };

static json_t *cpus_json(hwloc_obj_t object)
{
	char text[CPUS_BYTES];

	hwloc_bitmap_list_snprintf(text, sizeof(text), object->cpuset);
	return json_string(text);
}

static json_t *object_json(hwloc_obj_t object)
{
	json_t *row = json_object();

	if (object->type == HWLOC_OBJ_PACKAGE || object->type == HWLOC_OBJ_NUMANODE)
		json_object_set_new(
			row, "number", json_integer((json_int_t)object->os_index));
	if (object->type == HWLOC_OBJ_NUMANODE)
		json_object_set_new(row, "bytes",
			json_integer((json_int_t)object->attr->numanode.local_memory));
	if (hwloc_obj_type_is_dcache(object->type)) {
		json_object_set_new(row, "level",
			json_integer((json_int_t)object->attr->cache.depth));
		json_object_set_new(
			row, "bytes", json_integer((json_int_t)object->attr->cache.size));
	}
	json_object_set_new(row, "cpus", cpus_json(object));
	return row;
}

static void append_all(json_t *list, hwloc_topology_t topology, hwloc_obj_type_t type)
{
	int count = hwloc_get_nbobjs_by_type(topology, type);

	for (int i = 0; i < count; i++)
		json_array_append_new(list,
			object_json(hwloc_get_obj_by_type(topology, type, (unsigned)i)));
}

static json_t *list_json(hwloc_topology_t topology, hwloc_obj_type_t type)
{
	json_t *list = json_array();

	append_all(list, topology, type);
	return list;
}

static json_t *caches_json(hwloc_topology_t topology)
{
	static const hwloc_obj_type_t types[] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE,
		HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE};
	json_t *list = json_array();

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		append_all(list, topology, types[i]);
	return list;
}

json_t *info_json(const struct machine *machine, hwloc_topology_t topology)
{
	json_t *top = json_pack("{s:s, s:s, s:i, s:s, s:I, s:I}", "host", machine->host,
		"cpu", machine->cpu, "cores", machine->cores, "vectors",
		machine->vector_unit, "memoryBytes", (json_int_t)machine->memory_bytes,
		"memoryAvailableBytes", (json_int_t)machine->memory_available_bytes);

	if (!top)
		return NULL;
	json_object_set_new(top, "coresGranted",
		machine->quota > 0 ? json_real(machine->quota) : json_null());
	json_object_set_new(top, "sockets", list_json(topology, HWLOC_OBJ_PACKAGE));
	json_object_set_new(top, "memoryNodes", list_json(topology, HWLOC_OBJ_NUMANODE));
	json_object_set_new(top, "caches", caches_json(topology));
	json_object_set_new(top, "coreList", list_json(topology, HWLOC_OBJ_CORE));
	return top;
}
