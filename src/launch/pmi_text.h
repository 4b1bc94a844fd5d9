/*
 * pmi_text.h - a message of the process management interface: words of the form
 * key=value.
 *
 * PMI-1 puts blanks between the words and a newline behind them, PMI-2 semicolons, behind
 * each word, and six digits with the length in front. Whoever started us is at the other
 * end, so it is read with care all the same.
 */
#ifndef LAUNCH_PMI_TEXT_H
#define LAUNCH_PMI_TEXT_H

#include <stdbool.h>
#include <stddef.h>

enum { PMI_TEXT_BYTES = 8192, PMI_LENGTH_DIGITS = 6 };

/* The value of `key`, copied; false when the message has none, or it does not fit. `end`
 * is what stands between words: a blank or a semicolon. */
bool pmi_value(const char *text, char end, const char *key, char *value, size_t room);

/* The message is the answer `command`, and says that it went well (rc=0, or no rc). */
bool pmi_is_good(const char *text, char end, const char *command);

/* The length in front of a PMI-2 message; false when it is no such number. */
bool pmi_length(const char digits[PMI_LENGTH_DIGITS], size_t *bytes);

#endif
