/* The parts of the libfabric plugin that need no provider: settings, the choice of one,
 * and registered memory. */
#include <stdarg.h>

#include "device.h"
#include "known.h"
#include "port.h"
#include "say.h"
#include "setting.h"
#include "test.h"

static char said[4096];

__attribute__((format(printf, 5, 6))) static void listen_to(int level,
	unsigned long subsystems, const char *file, int line, const char *format, ...)
{
	size_t bytes = strlen(said);
	va_list args;

	(void)level;
	(void)subsystems;
	(void)file;
	(void)line;
	va_start(args, format);
	vsnprintf(said + bytes, sizeof(said) - bytes, format, args);
	va_end(args);
}

static int read_with(const char *name, const char *value)
{
	int result;

	said[0] = '\0';
	setenv(name, value, 1);
	result = settings_read();
	unsetenv(name);
	return result;
}

static void test_settings(void)
{
	EQ(settings_read(), OFI_OK);
	EQ(setting_int(SET_CQ_SIZE), 12288);
	EQ_STR(setting_text(SET_EXCLUDE_TCP_IF), "lo,docker0");
	TRUE(!setting_is_given(SET_CQ_SIZE));
	EQ(read_with("OFI_NCCL_CQ_SIZE", "4096"), OFI_OK);
	EQ(setting_int(SET_CQ_SIZE), 4096);
	TRUE(setting_is_given(SET_CQ_SIZE));
	EQ(read_with("OFI_NCCL_CQ_SIZE", "many"), OFI_ARGUMENT);
	TRUE(strstr(said, "OFI_NCCL_CQ_SIZE is many, which is no number from 64 to"));
	EQ(read_with("OFI_NCCL_CQ_READ_COUNT", "65"), OFI_ARGUMENT);
	EQ(read_with("OFI_NCCL_CQ_READ_COUNT", "4x"), OFI_ARGUMENT);
	EQ(read_with("OFI_NCCL_PROTOCL", "RDMA"), OFI_OK);
	TRUE(strstr(said, "OFI_NCCL_PROTOCL is not a variable of this plugin"));
	TRUE(strstr(said, "is it meant to be OFI_NCCL_PROTOCOL"));
	EQ(read_with("OFI_NCCL_SOMETHING_ELSE_ALTOGETHER", "1"), OFI_OK);
	TRUE(!strstr(said, "is it meant to be"));
	EQ(settings_read(), OFI_OK);
}

static void test_choice(void)
{
	TRUE(provider_rank("efa") < provider_rank("verbs;ofi_rxm"));
	TRUE(provider_rank("verbs;ofi_rxm") < provider_rank("tcp;ofi_rxm"));
	TRUE(provider_rank("net") < provider_rank("tcp;ofi_rxm"));
	TRUE(provider_rank("tcp") < provider_rank("sockets"));
	EQ(provider_rank("shm"), -1); /* it reaches no other host */
	TRUE(list_has("lo,docker0", "lo"));
	TRUE(list_has("lo,docker0", "docker0"));
	TRUE(!list_has("lo,docker0", "docker"));
	TRUE(!list_has("lo,docker0", "lo0"));
	TRUE(!list_has("", "lo"));
	TRUE(provider_holds_up("net"));
	TRUE(provider_holds_up("tcp"));
	TRUE(!provider_holds_up("tcp;ofi_rxm"));
	TRUE(!provider_holds_up("efa"));
	TRUE(strstr(port_meaning("efa", 4126), "first rank that failed"));
	TRUE(strstr(port_meaning("efa", 15), "security group"));
	EQ_STR(port_meaning("efa", 4000), "");
	EQ_STR(port_meaning("tcp", 4126), "");
}

/* ---- registered memory ---- */

static int made, limit = 1000000;

static struct known_range registered; /* the last */

static int fake_reg(void *context, const struct known_range *range, void **handle)
{
	(void)context;
	registered = *range;
	if (made == limit)
		return 12;
	made++;
	*handle = range->data;
	return 0;
}

static void fake_dereg(void *context, void *handle)
{
	(void)context;
	(void)handle;
	made--;
}

static const struct known_ops fake_ops = {fake_reg, fake_dereg};

static char *page(uintptr_t index)
{
	return (char *)(0x10000000 + index * 4096);
}

static int get(struct known_cache *cache, char *data, size_t bytes, struct known **known)
{
	return known_get(
		cache, &(struct known_range){.data = data, .bytes = bytes}, known);
}

/* A dma-buf is registered by whole pages only where there are such in its file. */
static void test_known_gpu(void)
{
	struct known_cache cache = {.ops = &fake_ops};
	struct known_range range = {.data = page(3) + 100,
		.bytes = 50,
		.kind = KNOWN_DMABUF,
		.device = 2,
		.fd = 7,
		.offset = 4196};
	struct known *a, *b;

	EQ(known_get(&cache, &range, &a), 0);
	TRUE(known_is_gpu(a));
	TRUE(registered.data == page(3) && registered.bytes == 4096);
	EQ(registered.offset, 4096);
	EQ(registered.fd, 7);
	range.offset = 10;
	range.data = page(5) + 100;
	EQ(known_get(&cache, &range, &b), 0);
	TRUE(registered.data == range.data);
	EQ(registered.offset, 10);
	EQ(registered.bytes, 4096 - 100);
	known_put(&cache, a);
	EQ(get(&cache, page(5) + 200, 10, &a), 0); /* not found: it is the host's */
	TRUE(!known_is_gpu(a));
	known_forget(&cache);
	EQ(made, 0);
}

static void test_known(void)
{
	struct known_cache cache = {.ops = &fake_ops};
	struct known *a, *b, *c, *d;

	EQ(get(&cache, page(10) + 100, 5000, &a), 0); /* pages 10 and 11 */
	EQ(get(&cache, page(11), 10, &b), 0);
	TRUE(a == b);
	EQ(made, 1);
	EQ(cache.hits, 1);
	EQ(get(&cache, page(11), 4097, &c), 0); /* 11 and 12: not covered */
	TRUE(c != a);
	EQ(get(&cache, page(0), 4096 * 20, &d), 0); /* around both */
	EQ(made, 3);
	EQ(get(&cache, page(12), 1, &b), 0);
	TRUE(b == c || b == d);
	known_put(&cache, b);
	known_put(&cache, a);
	EQ(made, 3);
	known_put(&cache, a);
	EQ(made, 2);
	known_put(&cache, c);
	known_put(&cache, d);
	EQ(made, 0);
	EQ(cache.count, 0);
	limit = 0;
	EQ(get(&cache, page(1), 1, &a), 12); /* refused */
	EQ(cache.count, 0);
	limit = 1000000;
	for (uintptr_t i = 0; i < 1000; i++)
		EQ(get(&cache, page(i * 7919 % 1000 * 2), 4096, &a), 0);
	EQ(cache.count, 1000);
	for (uintptr_t i = 0; i < 1000; i++) {
		EQ(get(&cache, page(i * 2) + 17, 100, &a), 0);
		TRUE(known_made(a) == page(i * 2));
	}
	EQ(made, 1000);
	known_forget(&cache);
	EQ(made, 0);
	cache.is_off = 1;
	EQ(get(&cache, page(1), 1, &a), 0);
	EQ(get(&cache, page(1), 1, &b), 0);
	EQ(made, 2);
	known_put(&cache, b);
	known_put(&cache, a);
	EQ(made, 0);
	known_forget(&cache);
}

int main(void)
{
	say_open(listen_to);
	test_settings();
	test_choice();
	test_known();
	test_known_gpu();
	return 0;
}
