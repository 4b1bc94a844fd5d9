/*
 * err.h - the one error type, and the sentence that goes with each failure.
 *
 * The first function that knows the cause calls err_set(); everyone above returns the
 * code unchanged. The values are those of ncclResult_t, so api/ only casts.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

enum { ERR_TEXT_BYTES = 512 };

enum err {
	OK = 0,
	ERR_CUDA = 1,
	ERR_SYSTEM = 2,	  /* the operating system refused something */
	ERR_INTERNAL = 3, /* a bug of ours */
	ERR_ARGUMENT = 4, /* the call had no effect */
	ERR_USAGE = 5,	  /* legal arguments, illegal moment or combination */
	ERR_REMOTE = 6,	  /* another rank died, left or aborted */
	ERR_PROGRESS = 7, /* not finished: ask again */
	ERR_TIMEOUT = 8,
	ERR_AGAIN = 100 /* internal only: nothing to do now, never leaves the library */
};

/* Format a sentence, keep it for err_last(), log it once at WARN, return `code`. */
enum err err_set(enum err code, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Make another thread's sentence this thread's own: it did our work, and has logged it.
 */
void err_adopt(const char *sentence);

/* From now on this thread's sentences are for who adopts them alone, and are not logged.
 */
void err_hush(void);

/* The newest sentence of this thread, else of the process; "" when nothing failed. */
const char *err_last(void);

/* ncclGetErrorString's text for a code. */
const char *err_name(enum err code);

#endif
