#include "train/goodput.h"

#include <math.h>

void goodput_make(uint32_t gpus, double checkpoint_s, double restart_s,
	struct train_goodput *goodput)
{
	double mtbf = GOODPUT_GPU_HOURS * 3600 / gpus;
	double interval = sqrt(2 * checkpoint_s * mtbf), lost = restart_s / mtbf;

	if (interval > 0)
		lost += checkpoint_s / interval + interval / (2 * mtbf);
	*goodput = (struct train_goodput){mtbf, interval, fmax(0, 1 - lost)};
}
