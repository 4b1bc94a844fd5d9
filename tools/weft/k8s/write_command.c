/* What the pods run. */
#include <stdio.h>
#include <string.h>

#include "weft/k8s/write_sheet.h"

enum { MASTER_BYTES = 160, PORT = 29500 };

static void word(const struct sheet *sheet, int indent, const char *text)
{
	sheet_line(sheet, indent, NULL, "- %s", text);
}

static void pair(
	const struct sheet *sheet, int indent, const char *option, const char *value)
{
	word(sheet, indent, option);
	word(sheet, indent, value);
}

static void sizes(const struct sheet *sheet, int indent, const char *last)
{
	static const char *const words[] = {"-b", "\"8\"", "-e", "16G", "-f", "\"2\""};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		word(sheet, indent, strcmp(words[i], "16G") ? words[i] : last);
}

void command_mpirun(const struct sheet *sheet, int indent)
{
	bool is_ours = sheet->args->load == LOAD_WEFT;

	sheet_line(sheet, indent, NULL, "command:");
	word(sheet, indent, "mpirun");
	word(sheet, indent, "--allow-run-as-root");
	sheet_line(sheet, indent, "the rank in front of every line", "- --tag-output");
	sheet_line(sheet, indent, "all ranks: workers times slots", "- -np");
	sheet_line(sheet, indent, NULL, "- \"%d\"", sheet->pods * sheet->gpus);
	sheet_line(sheet, indent, "in each worker: slotsPerWorker", "- -N");
	sheet_line(sheet, indent, NULL, "- \"%d\"", sheet->gpus);
	sheet_line(sheet, indent, "NCCL pins its own threads", "- --bind-to");
	word(sheet, indent, "none");
	pair(sheet, indent, "-x", "PATH");
	pair(sheet, indent, "-x", "LD_LIBRARY_PATH");
	pair(sheet, indent, "-x", "NCCL_DEBUG=INFO");
	if (sheet->efa)
		pair(sheet, indent, "-x", "FI_PROVIDER=efa");
	sheet_line(
		sheet, indent, "MPI itself talks by TCP; only NCCL uses EFA", "- --mca");
	word(sheet, indent, "pml");
	word(sheet, indent, "^ucx");
	pair(sheet, indent, "--mca", "btl");
	word(sheet, indent, "tcp,self");
	pair(sheet, indent, "--mca", "btl_tcp_if_exclude");
	word(sheet, indent, "lo,docker0,veth_def_agent");
	word(sheet, indent,
		is_ours ? "all_reduce_perf" : "/opt/nccl-tests/build/all_reduce_perf");
	sizes(sheet, indent, is_ours ? "1G" : "16G");
	sheet_line(sheet, indent, "one GPU for each rank", "- -g");
	word(sheet, indent, "\"1\"");
	pair(sheet, indent, "-c", "\"1\"");
	pair(sheet, indent, "-n", "\"100\"");
}

/* A measurement for images that have torch and no nccl-tests. */
static void script(const struct sheet *sheet, int indent)
{
	static const char *const lines[] = {
		"cat > /tmp/all_reduce.py << 'EOF'",
		"import os, time, torch, torch.distributed as dist",
		"torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"]))",
		"dist.init_process_group(\"nccl\")",
		"ranks = dist.get_world_size()",
		"for shift in range(10, 33, 2):",
		"    data = torch.ones(2 ** shift // 4, device=\"cuda\")",
		"    for turn in range(25):",
		"        if turn == 5:",
		"            torch.cuda.synchronize(); start = time.time()",
		"        dist.all_reduce(data)",
		"    torch.cuda.synchronize(); taken = (time.time() - start) / 20",
		"    busbw = 2 ** shift / taken / 1e9 * 2 * (ranks - 1) / ranks",
		"    if dist.get_rank() == 0:",
		"        us = taken * 1e6  # and the bus bandwidth in GB/s",
		"        print(f\"{2 ** shift:>12} B {us:>10.1f} us {busbw:>8.2f}\")",
		"dist.destroy_process_group()",
		"EOF",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		sheet_line(sheet, indent, NULL, "%s", lines[i]);
}

static const char *program(const struct sheet *sheet)
{
	switch (sheet->args->load) {
	case LOAD_NCCL_TEST:
		return "/tmp/all_reduce.py";
	case LOAD_DEEPSPEED:
		return "train.py --deepspeed ds_config.json";
	default:
		return "train.py";
	}
}

static void shell(const struct sheet *sheet, int indent)
{
	sheet_line(sheet, indent, NULL, "command:");
	word(sheet, indent, "bash");
	word(sheet, indent, "-c");
	word(sheet, indent, "|");
	if (sheet->args->load == LOAD_NCCL_TEST)
		script(sheet, indent + 2);
}

void command_operator(const struct sheet *sheet, int indent)
{
	shell(sheet, indent);
	sheet_line(sheet, indent + 2, NULL,
		"# The operator says where and who: PET_NNODES, PET_NODE_RANK, "
		"PET_MASTER_ADDR ..");
	sheet_line(sheet, indent + 2, NULL, "exec torchrun %s", program(sheet));
}

/* torchrun is told everything; `rank` is a shell's expression. */
static void torchrun(const struct sheet *sheet, int indent, const char *rank)
{
	char master[MASTER_BYTES];

	sheet_master(sheet, master, sizeof(master));
	shell(sheet, indent);
	sheet_line(sheet, indent + 2, NULL, "exec torchrun \\");
	sheet_line(sheet, indent + 4, NULL, "--nnodes=%d --node_rank=%s \\", sheet->pods,
		rank);
	sheet_line(sheet, indent + 4, NULL, "--nproc_per_node=%d \\", sheet->gpus);
	sheet_line(sheet, indent + 4, NULL, "--master_addr=%s --master_port=%d \\",
		master, PORT);
	sheet_line(sheet, indent + 4, NULL, "%s", program(sheet));
}

/* Weft's own programs find their rank in what the Job sets. */
static void weft_perf(const struct sheet *sheet, int indent)
{
	sheet_line(sheet, indent, NULL, "command:");
	word(sheet, indent, "all_reduce_perf");
	sheet_line(sheet, indent, "ranks of this pod", "- -t");
	sheet_line(sheet, indent, NULL, "- \"%d\"", sheet->gpus);
	sizes(sheet, indent, "1G");
}

void command_indexed(const struct sheet *sheet, int indent)
{
	if (sheet->args->load == LOAD_WEFT)
		weft_perf(sheet, indent);
	else
		torchrun(sheet, indent, "$JOB_COMPLETION_INDEX");
}

void command_ordinal(const struct sheet *sheet, int indent)
{
	torchrun(sheet, indent, "${HOSTNAME##*-}");
}
