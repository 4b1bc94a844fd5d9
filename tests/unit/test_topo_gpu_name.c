/* GPUs have the names people call them by, or their generation's, and never a wrong one.
 */
#include "topo/gpu_name.h"

#include "test.h"

int main(void)
{
	EQ_STR(gpu_name(0x10de2330, 90), "H100");
	EQ_STR(gpu_name(0x10de2335, 90), "H200");
	EQ_STR(gpu_name(0x10de20b5, 80), "A100-80GB");
	EQ_STR(gpu_name(0x10de31c2, 103), "GB300");
	EQ_STR(gpu_name(0x10de2330, 89), "Ada"); /* an id that does not fit */
	EQ_STR(gpu_name(0x10deffff, 90), "Hopper");
	EQ_STR(gpu_name(0, 70), "Volta");
	EQ_STR(gpu_name(0, 100), "Blackwell");
	EQ_STR(gpu_name(0x1d9455b7, 90), "GPU"); /* another maker's */
	EQ_STR(gpu_name(0, 0), "GPU");
	return 0;
}
