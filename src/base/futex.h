/*
 * futex.h - sleep until a 32-bit word changes, between threads or processes.
 */
#ifndef BASE_FUTEX_H
#define BASE_FUTEX_H

#include <stdint.h>

/* Sleep while *word is `expected`, at most `timeout_us`. May return early. */
void futex_wait(const void *word, uint32_t expected, uint32_t timeout_us);

/* Wake everyone who sleeps on `word`. */
void futex_wake(const void *word);

/* Tell the core that this is a spin. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#endif
