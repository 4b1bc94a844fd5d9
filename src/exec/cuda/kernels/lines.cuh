/*
 * lines.cuh - the codecs whose data brings flags with it: LL and LL128 (steps_abi.h).
 *
 * A unit is 16 bytes of a slot. A thread that reads a slot looks at its own units until
 * their flags are those of the message; nobody waits for the block. User memory is read
 * and written 8 bytes at a time where it lies so, else in smaller parts.
 */
#ifndef EXEC_CUDA_KERNELS_LINES_CUH
#define EXEC_CUDA_KERNELS_LINES_CUH

#include "exec/cuda/kernels/steps.cuh"

enum { SLOT_UNIT = 16, LINE_LANES = 8, LINE_BYTES = 120, LINES_ABORT_TURNS = 1024 };

/* The units that a thread has in flight: `unit` and on, each a block's threads further.
 * Their data begins at byte `offset` of a piece, each `apart` further. */
struct lines_turn {
	uint32_t unit, unit_count;
	uint32_t offset, apart, bytes;
	__device__ __forceinline__ bool is_there(int u) const
	{
		return unit + u * blockDim.x < unit_count;
	}
	__device__ __forceinline__ uint32_t slot_offset(int u) const
	{
		return (unit + u * blockDim.x) * SLOT_UNIT;
	}
	__device__ __forceinline__ uint32_t data_offset(int u) const
	{
		return offset + u * apart;
	}
};

DEVICE void slot_store(uint64_t address, bool is_there, const uint4 &unit)
{
	asm volatile(
		"{.reg .pred p; setp.ne.u32 p, %5, 0;\n\t"
		"@p st.volatile.global.v4.u32 [%4], {%0, %1, %2, %3};}" ::"r"(unit.x),
		"r"(unit.y), "r"(unit.z), "r"(unit.w), "l"(address),
		"r"((uint32_t)is_there)
		: "memory");
}

DEVICE void slot_load(uint64_t address, bool is_there, uint4 *unit)
{
	asm volatile("{.reg .pred p; setp.ne.u32 p, %5, 0;\n\t"
		     "@p ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];}"
		     : "+r"(unit->x), "+r"(unit->y), "+r"(unit->z), "+r"(unit->w)
		     : "l"(address), "r"((uint32_t)is_there)
		     : "memory");
}

/* 8 bytes of data: d0 flag d1 flag. */
struct codec_ll {
	static constexpr int FLAG_BITS = 32, BYTES = 8, IN_FLIGHT = 2;
	static __device__ __forceinline__ uint32_t count(uint32_t bytes)
	{
		return (bytes + BYTES - 1) / BYTES;
	}
	static __device__ __forceinline__ uint32_t offset(uint32_t unit)
	{
		return unit * BYTES;
	}
	static __device__ __forceinline__ uint32_t room(uint32_t)
	{
		return BYTES;
	}
	static __device__ __forceinline__ uint4 encode(
		const uint64_t *data, uint64_t flag, uint32_t)
	{
		return make_uint4((uint32_t)data[0], (uint32_t)flag,
			(uint32_t)(data[0] >> 32), (uint32_t)flag);
	}
	static __device__ __forceinline__ void decode(const uint4 &unit, uint64_t *data)
	{
		data[0] = unit.x | (uint64_t)unit.z << 32;
	}
	/* Until the flags of all units are there; false: told to stop. A warp goes on as
	 * one or not at all, since its threads wait for each other when they store. */
	static __device__ __forceinline__ bool load(const struct lines_turn &turn,
		uint64_t slot, uint64_t flag, const uint32_t *abort, uint4 *units)
	{
		bool is_stopped = false;
		uint32_t late = 0;

#pragma unroll
		for (int u = 0; u < IN_FLIGHT; u++)
			late |= turn.is_there(u) ? 1u << u : 0;
		for (uint32_t look = 1; late && !is_stopped; look++) {
#pragma unroll
			for (int u = 0; u < IN_FLIGHT; u++)
				slot_load(slot + turn.slot_offset(u), late >> u & 1,
					&units[u]);
#pragma unroll
			for (int u = 0; u < IN_FLIGHT; u++)
				if (units[u].y == (uint32_t)flag &&
					units[u].w == (uint32_t)flag)
					late &= ~(1u << u);
			if (late && look % LINES_ABORT_TURNS == 0)
				is_stopped = word_read(abort) != 0;
		}
		return !__any_sync(~0u, is_stopped);
	}
};

/* 16 bytes of data, but 8 and the flag at the end of a line. The 8 threads of a line load
 * and store together. */
struct codec_ll128 {
	static constexpr int FLAG_BITS = 64, BYTES = 16, IN_FLIGHT = 2;
	static __device__ __forceinline__ bool is_last(uint32_t unit)
	{
		return unit % LINE_LANES == LINE_LANES - 1;
	}
	static __device__ __forceinline__ uint32_t count(uint32_t bytes)
	{
		return (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_LANES;
	}
	static __device__ __forceinline__ uint32_t offset(uint32_t unit)
	{
		return unit / LINE_LANES * LINE_BYTES + unit % LINE_LANES * BYTES;
	}
	static __device__ __forceinline__ uint32_t room(uint32_t unit)
	{
		return is_last(unit) ? BYTES / 2 : BYTES;
	}
	static __device__ __forceinline__ uint4 encode(
		const uint64_t *data, uint64_t flag, uint32_t unit)
	{
		uint64_t high = is_last(unit) ? flag : data[1];

		return make_uint4((uint32_t)data[0], (uint32_t)(data[0] >> 32),
			(uint32_t)high, (uint32_t)(high >> 32));
	}
	static __device__ __forceinline__ void decode(const uint4 &unit, uint64_t *data)
	{
		data[0] = unit.x | (uint64_t)unit.y << 32;
		data[1] = unit.z | (uint64_t)unit.w << 32;
	}
	/* The whole warp looks again when one flag is missing. */
	static __device__ __forceinline__ bool load(const struct lines_turn &turn,
		uint64_t slot, uint64_t flag, const uint32_t *abort, uint4 *units)
	{
		for (uint32_t look = 1;; look++) {
			bool is_late = false;

#pragma unroll
			for (int u = 0; u < IN_FLIGHT; u++)
				slot_load(slot + turn.slot_offset(u), turn.is_there(u),
					&units[u]);
#pragma unroll
			for (int u = 0; u < IN_FLIGHT; u++)
				if (turn.is_there(u) && is_last(turn.unit) &&
					(units[u].z != (uint32_t)flag ||
						units[u].w != (uint32_t)(flag >> 32)))
					is_late = true;
			if (!__any_sync(~0u, is_late))
				return true;
			if (look % LINES_ABORT_TURNS == 0 &&
				__any_sync(~0u, word_read(abort) != 0))
				return false;
		}
	}
};

/* Up to 8 bytes anywhere, in the largest parts in which they lie. */
DEVICE uint64_t narrow_load(uint64_t address, uint32_t bytes)
{
	uint64_t all = 0;

#pragma unroll 1
	for (uint32_t i = 0; i < bytes;) {
		if ((address + i) % 4 == 0 && bytes - i >= 4) {
			all |= (uint64_t)__ldcs((const uint32_t *)(address + i)) << 8 * i;
			i += 4;
		} else if ((address + i) % 2 == 0 && bytes - i >= 2) {
			all |= (uint64_t)__ldcs((const uint16_t *)(address + i)) << 8 * i;
			i += 2;
		} else {
			all |= (uint64_t)__ldcs((const uint8_t *)(address + i)) << 8 * i;
			i++;
		}
	}
	return all;
}

DEVICE void narrow_store(uint64_t address, uint32_t bytes, uint64_t all)
{
#pragma unroll 1
	for (uint32_t i = 0; i < bytes;) {
		if ((address + i) % 4 == 0 && bytes - i >= 4) {
			__stcs((uint32_t *)(address + i), (uint32_t)(all >> 8 * i));
			i += 4;
		} else if ((address + i) % 2 == 0 && bytes - i >= 2) {
			__stcs((uint16_t *)(address + i), (uint16_t)(all >> 8 * i));
			i += 2;
		} else {
			__stcs((uint8_t *)(address + i), (uint8_t)(all >> 8 * i));
			i++;
		}
	}
}

DEVICE void word_load(uint64_t address, bool is_there, uint64_t *to)
{
	asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0;\n\t"
		     "@p ld.global.cs.u64 %0, [%1];}"
		     : "+l"(*to)
		     : "l"(address), "r"((uint32_t)is_there)
		     : "memory");
}

DEVICE void word_store(uint64_t address, bool is_there, uint64_t from)
{
	asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0;\n\t"
		     "@p st.global.cs.u64 [%0], %1;}" ::"l"(address),
		     "l"(from), "r"((uint32_t)is_there)
		     : "memory");
}

/* 8 or 16 bytes of elements. */
template <class T, class Codec> struct unit_line {
	using word = typename T::word;
	static constexpr int BYTES = Codec::BYTES, WORDS = BYTES / sizeof(word);
	static constexpr int IN_FLIGHT = Codec::IN_FLIGHT, PARTS = BYTES / 8;
	word words[WORDS];
};

/* What there is of the 8 bytes at an offset; the flag of a line is not of the data. */
template <class Codec>
DEVICE uint32_t part_left(const struct lines_turn &turn, int u, int k)
{
	uint32_t offset = turn.data_offset(u) + 8 * k;
	uint32_t left = turn.bytes > offset ? turn.bytes - offset : 0;

	if (8 * k >= (int)Codec::room(turn.unit))
		return 0;
	return left < 8 ? left : 8;
}

template <class Codec, class Kind> struct lines {
	static constexpr bool HAS_FLAGS = true;
	static constexpr int FLAG_BITS = Codec::FLAG_BITS;
	using unit = unit_line<typename Kind::type, Codec>;
	using folds = typename Kind::template work<unit>;
	static constexpr int IN_FLIGHT = unit::IN_FLIGHT, PARTS = unit::PARTS;
	static __device__ __forceinline__ void user_load(
		const struct lines_turn &turn, uint64_t address, unit *units)
	{
		bool is_wide = address % 8 == 0;
		uint64_t data[IN_FLIGHT][PARTS] = {};

		address += turn.offset;
#pragma unroll
		for (int u = 0; u < IN_FLIGHT; u++)
#pragma unroll
			for (int k = 0; k < PARTS; k++)
				word_load(address + u * turn.apart + 8 * k,
					is_wide && part_left<Codec>(turn, u, k) == 8,
					&data[u][k]);
#pragma unroll
		for (int u = 0; u < IN_FLIGHT; u++)
#pragma unroll
			for (int k = 0; k < PARTS; k++) {
				uint32_t left = part_left<Codec>(turn, u, k);

				if (left && !(is_wide && left == 8))
					data[u][k] = narrow_load(
						address + u * turn.apart + 8 * k, left);
			}
		memcpy(units, data, sizeof(data));
	}
	static __device__ __forceinline__ void user_store(
		const struct lines_turn &turn, uint64_t address, const unit *units)
	{
		bool is_wide = address % 8 == 0;
		uint64_t data[IN_FLIGHT][PARTS];

		address += turn.offset;
		memcpy(data, units, sizeof(data));
#pragma unroll
		for (int u = 0; u < IN_FLIGHT; u++)
#pragma unroll
			for (int k = 0; k < PARTS; k++) {
				uint32_t left = part_left<Codec>(turn, u, k);
				uint64_t to = address + u * turn.apart + 8 * k;

				word_store(to, is_wide && left == 8, data[u][k]);
				if (left && !(is_wide && left == 8))
					narrow_store(to, left, data[u][k]);
			}
	}
	static __device__ __forceinline__ bool load(const struct work &work,
		uint32_t input, const struct lines_turn &turn, unit *units)
	{
		uint64_t place = work.places[input], flag = work.flags[input];
		uint4 raw[IN_FLIGHT] = {};
		uint64_t data[IN_FLIGHT][PARTS];

		if (!flag) {
			user_load(turn, place, units);
			return true;
		}
		if (!Codec::load(turn, place, flag, work.args->abort, raw))
			return false;
#pragma unroll
		for (int u = 0; u < IN_FLIGHT; u++)
			Codec::decode(raw[u], data[u]);
		memcpy(units, data, sizeof(data));
		return true;
	}
	static __device__ __forceinline__ void store(const struct work &work,
		uint32_t output, const struct lines_turn &turn, const unit *units)
	{
		uint64_t slot = work.places[output], flag = work.flags[output];
		uint64_t data[IN_FLIGHT][PARTS];

		if (!flag) {
			user_store(turn, slot, units);
			return;
		}
		memcpy(data, units, sizeof(data));
		/* the threads of a line store as one */
		__syncwarp();
#pragma unroll
		for (int u = 0; u < IN_FLIGHT; u++)
			slot_store(slot + turn.slot_offset(u), turn.is_there(u),
				Codec::encode(data[u], flag, turn.unit));
	}
	static __device__ __forceinline__ bool run(
		const struct work &work, const struct ready_step &step)
	{
		struct run run = work_run(work, step);
		uint32_t places = run.input_count + run.output_count;
		struct lines_turn turn;

		turn.unit = threadIdx.x;
		turn.bytes = (uint32_t)work.bytes;
		turn.unit_count = Codec::count(turn.bytes);
		turn.offset = Codec::offset(turn.unit);
		turn.apart = Codec::offset(blockDim.x);
		/* whole warps go round together */
		while (turn.unit - threadIdx.x % LANES < turn.unit_count) {
			unit sum[IN_FLIGHT], next[IN_FLIGHT];

			if (!load(work, 0, turn, sum))
				return false;
			folds::scale(run, 0, sum);
#pragma unroll 1
			for (uint32_t i = 1; i < run.input_count; i++) {
				if (!load(work, i, turn, next))
					return false;
				folds::scale(run, i, next);
#pragma unroll
				for (int u = 0; u < IN_FLIGHT; u++)
					folds::fold(sum[u], next[u]);
			}
			folds::divide(run, sum);
#pragma unroll 1
			for (uint32_t i = run.input_count; i < places; i++)
				store(work, i, turn, sum);
			turn.unit += IN_FLIGHT * blockDim.x;
			turn.offset += IN_FLIGHT * turn.apart;
		}
		return true;
	}
};

#endif
