/*
 * units.cuh - one thread's part of a move: load, fold, store.
 *
 * A unit is 16 bytes where all buffers of a move lie alike, else an element. All inputs
 * of a unit are read before its outputs are written by the same thread, so an output may
 * be an input.
 */
#ifndef EXEC_CUDA_KERNELS_UNITS_CUH
#define EXEC_CUDA_KERNELS_UNITS_CUH

#include "exec/cuda/kernels/moves.cuh"

enum { UNROLL = 4 }; /* units a thread has in flight */

/* How many units of a move, where they are, and who does which: unit i begins at byte
 * i * size, and `gap` later from unit `split` on. */
struct run {
	const uint64_t *places;	  /* addresses: the inputs, then the outputs */
	const uint8_t *scaled_by; /* of each place: which scalar, or NOT_SCALED */
	const uint64_t *scalars;
	bool is_scaled; /* is any of them? */
	uint32_t input_count, output_count;
	uint32_t divisor;
	uint32_t at, step; /* first unit of this thread, distance to its next */
	uint64_t count, split, gap;
};

/* 16 bytes, if asked: without a branch, so that many loads are under way at once. What is
 * streamed is not read again soon. */
template <bool IS_STREAMED>
DEVICE void wide_load(uint64_t address, bool is_there, uint4 *to)
{
	if (!IS_STREAMED)
		asm volatile("{.reg .pred p; setp.ne.u32 p, %5, 0;\n\t"
			     "@p ld.global.v4.u32 {%0, %1, %2, %3}, [%4];}"
			     : "+r"(to->x), "+r"(to->y), "+r"(to->z), "+r"(to->w)
			     : "l"(address), "r"((uint32_t)is_there)
			     : "memory");
	else
		asm volatile("{.reg .pred p; setp.ne.u32 p, %5, 0;\n\t"
			     "@p ld.global.cs.v4.u32 {%0, %1, %2, %3}, [%4];}"
			     : "+r"(to->x), "+r"(to->y), "+r"(to->z), "+r"(to->w)
			     : "l"(address), "r"((uint32_t)is_there)
			     : "memory");
}

template <bool IS_STREAMED>
DEVICE void wide_store(uint64_t address, bool is_there, const uint4 &from)
{
	if (!IS_STREAMED)
		asm volatile("{.reg .pred p; setp.ne.u32 p, %5, 0;\n\t"
			     "@p st.global.v4.u32 [%4], {%0, %1, %2, %3};}" ::"r"(from.x),
			     "r"(from.y), "r"(from.z), "r"(from.w), "l"(address),
			     "r"((uint32_t)is_there)
			     : "memory");
	else
		asm volatile(
			"{.reg .pred p; setp.ne.u32 p, %5, 0;\n\t"
			"@p st.global.cs.v4.u32 [%4], {%0, %1, %2, %3};}" ::"r"(from.x),
			"r"(from.y), "r"(from.z), "r"(from.w), "l"(address),
			"r"((uint32_t)is_there)
			: "memory");
}

/*
 * Units. IN_FLIGHT: how many of them a thread has at a time; FEW: of how many inputs,
 * when it has only one.
 */

/* 16 bytes of elements at an address that is a multiple of 16. */
template <class T, bool IS_STREAMED> struct unit_wide {
	using word = typename T::word;
	static constexpr int BYTES = WIDE_BYTES, WORDS = BYTES / sizeof(word);
	static constexpr int IN_FLIGHT = UNROLL, FEW = 6;
	word words[WORDS];
	__device__ __forceinline__ void load(uint64_t address, bool is_there)
	{
		uint4 all;

		memcpy(&all, words, sizeof(all));
		wide_load<IS_STREAMED>(address, is_there, &all);
		memcpy(words, &all, sizeof(all));
	}
	__device__ __forceinline__ void store(uint64_t address, bool is_there) const
	{
		uint4 all;

		memcpy(&all, words, sizeof(all));
		wide_store<IS_STREAMED>(address, is_there, all);
	}
};

template <int WIDTH> struct bits_of;
template <> struct bits_of<1> {
	using type = uint8_t;
};
template <> struct bits_of<2> {
	using type = uint16_t;
};
template <> struct bits_of<4> {
	using type = uint32_t;
};
template <> struct bits_of<8> {
	using type = unsigned long long;
};

/* One element at an address that is a multiple of its size. */
template <class T> struct unit_element {
	using word = typename T::word;
	using bits = typename bits_of<T::WIDTH>::type;
	static constexpr int BYTES = T::WIDTH, WORDS = 1, IN_FLIGHT = UNROLL, FEW = 8;
	word words[WORDS];
	__device__ __forceinline__ void load(uint64_t address, bool is_there)
	{
		if (is_there)
			words[0] = __ldcs((const bits *)address);
	}
	__device__ __forceinline__ void store(uint64_t address, bool is_there) const
	{
		if (is_there)
			__stcs((bits *)address, (bits)words[0]);
	}
};

/* One element anywhere. */
template <class T> struct unit_astray {
	using word = typename T::word;
	static constexpr int BYTES = T::WIDTH, WORDS = 1, IN_FLIGHT = UNROLL, FEW = 8;
	word words[WORDS];
	__device__ __forceinline__ void load(uint64_t address, bool is_there)
	{
		words[0] = 0;
#pragma unroll 1
		for (int i = 0; i < BYTES && is_there; i++)
			words[0] |= (word)__ldcs((const uint8_t *)address + i) << 8 * i;
	}
	__device__ __forceinline__ void store(uint64_t address, bool is_there) const
	{
#pragma unroll 1
		for (int i = 0; i < BYTES && is_there; i++)
			__stcs((uint8_t *)address + i, (uint8_t)(words[0] >> 8 * i));
	}
};

template <class T> DEVICE typename T::word splat(uint64_t scalar)
{
	if (T::WIDTH == 1)
		return (typename T::word)((scalar & 0xff) * 0x01010101);
	if (T::WIDTH == 2)
		return (typename T::word)((scalar & 0xffff) * 0x00010001);
	return (typename T::word)scalar;
}

/* What is folded: x op y for whole units. Only sums are scaled or divided: average and
 * pre-multiplied sum are the operators that ask for it. */
template <class T, fold_op OP, class Unit> struct folding {
	static constexpr bool FOLDS = true;
	static __device__ __forceinline__ void fold(Unit &x, const Unit &y)
	{
#pragma unroll
		for (int i = 0; i < Unit::WORDS; i++)
			x.words[i] = T::template fold<OP>(x.words[i], y.words[i]);
	}
	static __device__ __forceinline__ void scale(
		const struct run &run, uint32_t input, Unit *units)
	{
		uint32_t rank;
		typename T::word by;

		if (OP != FOLD_SUM || !run.is_scaled)
			return;
		rank = run.scaled_by[input];
		if (rank == NOT_SCALED)
			return;
		by = splat<T>(run.scalars[rank]);
#pragma unroll
		for (int u = 0; u < Unit::IN_FLIGHT; u++)
#pragma unroll
			for (int i = 0; i < Unit::WORDS; i++)
				units[u].words[i] = T::template fold<FOLD_PROD>(
					units[u].words[i], by);
	}
	/* The same for one unit. */
	static __device__ __forceinline__ void scale_one(
		const struct run &run, uint32_t input, Unit &unit)
	{
		typename T::word by;

		if (OP != FOLD_SUM || !run.is_scaled ||
			run.scaled_by[input] == NOT_SCALED)
			return;
		by = splat<T>(run.scalars[run.scaled_by[input]]);
#pragma unroll
		for (int i = 0; i < Unit::WORDS; i++)
			unit.words[i] = T::template fold<FOLD_PROD>(unit.words[i], by);
	}
	static __device__ __forceinline__ void divide_one(
		const struct run &run, Unit &unit)
	{
		if constexpr (T::IS_INTEGER && OP == FOLD_SUM) {
			if (!run.divisor)
				return;
#pragma unroll
			for (int i = 0; i < Unit::WORDS; i++)
				unit.words[i] = T::divide(unit.words[i], run.divisor);
		}
	}
	static __device__ __forceinline__ void divide(const struct run &run, Unit *units)
	{
		if constexpr (T::IS_INTEGER && OP == FOLD_SUM) {
			if (!run.divisor)
				return;
#pragma unroll
			for (int u = 0; u < Unit::IN_FLIGHT; u++)
#pragma unroll
				for (int i = 0; i < Unit::WORDS; i++)
					units[u].words[i] = T::divide(
						units[u].words[i], run.divisor);
		}
	}
};

/* Nothing is. */
template <class Unit> struct copying {
	static constexpr bool FOLDS = false;
	static __device__ __forceinline__ void fold(Unit &, const Unit &)
	{
	}
	static __device__ __forceinline__ void scale(const struct run &, uint32_t, Unit *)
	{
	}
	static __device__ __forceinline__ void scale_one(
		const struct run &, uint32_t, Unit &)
	{
	}
	static __device__ __forceinline__ void divide(const struct run &, Unit *)
	{
	}
	static __device__ __forceinline__ void divide_one(const struct run &, Unit &)
	{
	}
};

/* Where the units of one turn are, and which of them there are. */
struct turn {
	uint64_t offset[UNROLL];
	bool is_there[UNROLL];
};

template <class Unit>
DEVICE void turn_load(const struct turn &turn, uint64_t address, Unit *units)
{
#pragma unroll
	for (int u = 0; u < UNROLL; u++)
		units[u].load(address + turn.offset[u], turn.is_there[u]);
}

template <class Unit>
DEVICE void turn_store(const struct turn &turn, uint64_t address, const Unit *units)
{
#pragma unroll
	for (int u = 0; u < UNROLL; u++)
		units[u].store(address + turn.offset[u], turn.is_there[u]);
}

/* Not even one unit for every thread: what takes time then is to wait for memory, so all
 * inputs are asked for before any is used. */
template <class Unit, class Work> DEVICE void run_few(const struct run &run)
{
	uint64_t offset = run.at * (uint64_t)Unit::BYTES +
			  (run.at < run.split ? 0 : run.gap);
	uint32_t places = run.input_count + run.output_count;
	Unit sum = {}, next[Unit::FEW] = {};

#pragma unroll 1
	for (uint32_t input = 0; input < run.input_count; input += Unit::FEW) {
#pragma unroll
		for (uint32_t i = 0; i < Unit::FEW; i++) {
			bool is_there = input + i < run.input_count;

			next[i].load(
				run.places[is_there ? input + i : 0] + offset, is_there);
		}
#pragma unroll
		for (uint32_t i = 0; i < Unit::FEW; i++) {
			if (input + i >= run.input_count)
				break;
			Work::scale_one(run, input + i, next[i]);
			if (input + i == 0)
				sum = next[i];
			else
				Work::fold(sum, next[i]);
		}
	}
	Work::divide_one(run, sum);
#pragma unroll 4
	for (uint32_t output = run.input_count; output < places; output++)
		sum.store(run.places[output] + offset, true);
}

/* Every thread has one unit at most: nothing needs to be cut. */
template <class Unit, class Work> DEVICE uint64_t run_tiny(struct run &run, uint64_t all)
{
	run.count = run.split = all / Unit::BYTES;
	run.gap = 0;
	if (run.at < run.count)
		run_few<Unit, Work>(run);
	return run.count;
}

/* This thread's units of one move. */
template <class Unit, class Work> DEVICE void run_units(const struct run &run)
{
	uint32_t places = run.input_count + run.output_count;

	if constexpr (Work::FOLDS)
		if (run.count <= run.step) {
			if (run.at < run.count)
				run_few<Unit, Work>(run);
			return;
		}
	for (uint64_t at = run.at; at < run.count; at += (uint64_t)UNROLL * run.step) {
		Unit sum[UNROLL] = {}, next[UNROLL] = {};
		struct turn turn;

#pragma unroll
		for (int u = 0; u < UNROLL; u++) {
			uint64_t i = at + (uint64_t)u * run.step;

			turn.is_there[u] = i < run.count;
			turn.offset[u] = i * Unit::BYTES + (i < run.split ? 0 : run.gap);
		}
		turn_load(turn, run.places[0], sum);
		Work::scale(run, 0, sum);
#pragma unroll 1
		for (uint32_t input = 1; input < run.input_count; input++) {
			turn_load(turn, run.places[input], next);
			Work::scale(run, input, next);
#pragma unroll
			for (int u = 0; u < UNROLL; u++)
				Work::fold(sum[u], next[u]);
		}
		Work::divide(run, sum);
#pragma unroll 1
		for (uint32_t output = run.input_count; output < places; output++)
			/* in place: there is nothing to copy */
			if (Work::FOLDS || run.places[output] != run.places[0])
				turn_store(turn, run.places[output], sum);
	}
}

/* The parts of a move that both kinds of kernel know. */
DEVICE struct run run_make(const struct shared *shared, const struct ready_move &move,
	uint32_t divisor, uint32_t turn)
{
	struct run run;

	run.places = move.places;
	run.scaled_by = move.scaled_by;
	run.scalars = shared->ranks.scalar;
	run.is_scaled = true;
	run.input_count = move.input_count;
	run.output_count = move.output_count;
	run.divisor = move.op & OP_POST ? divisor : 0;
	run.step = shared->threads;
	run.at = turn;
	return run;
}

/* Do `wide` units from byte `head` on, and then what lies before and behind them, `all`
 * bytes in all; the last threads begin with that. */
template <class Wide, class Small, template <class> class Work>
DEVICE uint64_t run_parts(struct run &run, uint64_t all, uint64_t head)
{
	uint64_t wide = (all - head) / Wide::BYTES;

	run.count = wide;
	run.split = 0;
	run.gap = head;
	run_units<Wide, Work<Wide>>(run);
	run.at = run.step - 1 - run.at;
	run.count = (all - wide * Wide::BYTES) / Small::BYTES;
	run.split = head / Small::BYTES;
	run.gap = wide * Wide::BYTES;
	run_units<Small, Work<Small>>(run);
	return wide + run.count;
}

/* Bytes up to the next multiple of `unit`, but no more than there are. */
DEVICE uint64_t run_head(uint64_t address, uint32_t unit, uint64_t all)
{
	uint64_t head = (0 - address) & (unit - 1);

	return head < all ? head : all;
}

/* What is done with a piece of memory. piece() does this thread's units of it, and says
 * how many units there are; `any` and `apart` are as in struct ready_move. run() is that
 * for a decoded move. */
template <class T, fold_op OP, bool IS_STREAMED = true> struct kind_fold {
	using type = T;
	template <class Unit> using work = folding<T, OP, Unit>;
	static __device__ __forceinline__ uint64_t piece(
		struct run &run, uint64_t all, uint32_t any, uint32_t apart)
	{
		uint64_t head = all;

		if (any % T::WIDTH == 0 && all <= (uint64_t)run.step * T::WIDTH)
			return run_tiny<unit_element<T>, work<unit_element<T>>>(run, all);
		if (T::WIDTH > 1 && any % T::WIDTH) {
			run.count = run.split = all / T::WIDTH;
			run.gap = 0;
			run_units<unit_astray<T>, work<unit_astray<T>>>(run);
			return run.count;
		}
		if (apart % WIDE_BYTES == 0)
			head = run_head(run.places[0], WIDE_BYTES, all);
		return run_parts<unit_wide<T, IS_STREAMED>, unit_element<T>, work>(
			run, all, head);
	}
	static __device__ __forceinline__ uint64_t run(const struct moves_args &args,
		const struct shared *shared, const struct ready_move &move, uint32_t turn)
	{
		struct run run = run_make(shared, move, args.divisor, turn);

		return piece(run, move.bytes, move.any, move.apart);
	}
};

/* Bytes, in the largest units in which all addresses can be reached at once. */
template <bool IS_STREAMED = true> struct kind_copy {
	using type = type_uint32;
	template <class Unit> using work = copying<Unit>;
	template <class Wide>
	static __device__ __forceinline__ uint64_t parts(struct run &run, uint64_t all)
	{
		uint64_t head = run_head(run.places[0], Wide::BYTES, all);

		return run_parts<Wide, unit_element<type_uint8>, copying>(run, all, head);
	}
	static __device__ __forceinline__ uint64_t piece(
		struct run &run, uint64_t all, uint32_t any, uint32_t apart)
	{
		using word = unit_element<type_uint32>;

		if ((any | (uint32_t)all) % word::BYTES == 0 &&
			all <= (uint64_t)run.step * word::BYTES)
			return run_tiny<word, copying<word>>(run, all);
		if (apart % 16 == 0)
			return parts<unit_wide<type_uint32, IS_STREAMED>>(run, all);
		if (apart % 8 == 0)
			return parts<unit_element<type_uint64>>(run, all);
		if (apart % 4 == 0)
			return parts<unit_element<type_uint32>>(run, all);
		if (apart % 2 == 0)
			return parts<unit_element<type_half>>(run, all);
		return parts<unit_element<type_uint8>>(run, all);
	}
	static __device__ __forceinline__ uint64_t run(const struct moves_args &,
		const struct shared *shared, const struct ready_move &move, uint32_t turn)
	{
		return copy(shared, move, turn);
	}
	static __device__ __forceinline__ uint64_t copy(
		const struct shared *shared, const struct ready_move &move, uint32_t turn)
	{
		struct run run = run_make(shared, move, 0, turn);

		return piece(run, move.bytes, move.any, move.apart);
	}
};

#endif
