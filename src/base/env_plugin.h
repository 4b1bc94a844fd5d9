/*
 * env_plugin.h - a plugin that knows the values of variables instead of the environment.
 *
 * NCCL_ENV_PLUGIN names it as plugin_file.h says; unset it is libnccl-env.so, if there is
 * one. It is loaded when the first parameter is asked for that is not the logger's and
 * not its own name. What it does not know is unset: the environment and NCCL's files are
 * not looked at any more. One that does not start is warned of, and they are.
 */
#ifndef BASE_ENV_PLUGIN_H
#define BASE_ENV_PLUGIN_H

#include <stdbool.h>

/* The version of NCCL that plugins are told. */
enum { ENV_PLUGIN_MAJOR = 2, ENV_PLUGIN_MINOR = 32, ENV_PLUGIN_PATCH = 3 };

/* Does a plugin answer for the environment? Then *text is a copy to free, or NULL when
 * the variable is unset. No lock may be held that the logger or a parameter needs. */
bool env_plugin_ask(const char *name, char **text);

#endif
