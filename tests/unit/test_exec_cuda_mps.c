/* The driver's word on MPS counts; where it has none, the daemon's socket does. */
#include "exec/cuda/driver/mps.h"

#include <unistd.h>

#include "../cuda/fake_cuda.h"
#include "base/param.h"

int main(void)
{
	char folder[] = "/tmp/weft-mps-XXXXXX", path[64];
	const struct cuda_driver *driver;
	FILE *file;

	fake_cuda_load(WEFT_FAKE_CUDA "/now");
	driver = cuda_driver();
	TRUE(driver);
	TRUE(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/control", folder);
	setenv("CUDA_MPS_PIPE_DIRECTORY", folder, 1);
	param_forget(PARAM_MPS_PIPE_DIRECTORY);
	unsetenv("FAKE_CUDA_MPS");
	TRUE(!mps_is_client(driver, 0));
	file = fopen(path, "w");
	TRUE(file);
	fclose(file);
	TRUE(mps_is_client(driver, 0));
	setenv("FAKE_CUDA_MPS", "0", 1);
	TRUE(!mps_is_client(driver, 0)); /* a daemon there, but not ours */
	unlink(path);
	setenv("FAKE_CUDA_MPS", "1", 1);
	TRUE(mps_is_client(driver, 0));
	rmdir(folder);
	return 0;
}
