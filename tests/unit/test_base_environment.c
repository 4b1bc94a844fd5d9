/* What threads of ours see of an environment that the program changes. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/param.h"
#include "base/thread.h"
#include "test.h"

enum { CHANGES = 3000, TURNS = 20, NAME_BYTES = 32 };

struct question {
	const char *name, *answer;
};

static void *ask(void *arg)
{
	struct question *question = arg;

	question->answer = environment_find(question->name);
	return NULL;
}

static const char *in_ours(const char *name)
{
	struct question question = {.name = name};
	pthread_t thread;

	environment_keep();
	EQ(thread_start(&thread, "test", ask, &question), 0);
	pthread_join(thread, NULL);
	return question.answer;
}

static void values(void)
{
	const char *first;

	setenv("WEFT_TEST_ONE", "1", 1);
	EQ_STR(environment_find("WEFT_TEST_ONE"), "1");
	first = in_ours("WEFT_TEST_ONE");
	EQ_STR(first, "1");
	setenv("WEFT_TEST_ONE", "22", 1);
	EQ_STR(in_ours("WEFT_TEST_ONE"), "22");
	EQ_STR(first, "1"); /* who holds it may go on */
	setenv("WEFT_TEST_ONE", "1", 1);
	TRUE(in_ours("WEFT_TEST_ONE") == first); /* no memory for what was there */
	unsetenv("WEFT_TEST_ONE");
	TRUE(!in_ours("WEFT_TEST_ONE"));
	TRUE(!in_ours("WEFT_TEST_"));
	setenv("WEFT_TEST_", "", 1);
	EQ_STR(in_ours("WEFT_TEST_"), "");
}

/* All of it, as the program has it. */
static void *compare(void *arg)
{
	char **texts = arg;
	uint32_t i = 0;

	for (; texts[i]; i++)
		EQ_STR(environment_at(i), texts[i]);
	TRUE(!environment_at(i));
	return NULL;
}

static void whole(void)
{
	pthread_t thread;

	for (uint32_t i = 0; environ[i]; i++)
		TRUE(environment_at(i) == environ[i]);
	environment_keep();
	EQ(thread_start(&thread, "test", compare, environ), 0);
	pthread_join(thread, NULL);
}

/* The copy is of when the program last called. */
struct late {
	atomic_int stage;
	const char *before, *after;
};

static void *late_main(void *arg)
{
	struct late *late = arg;

	while (atomic_load(&late->stage) < 1)
		;
	environment_keep(); /* not for this thread to do */
	late->before = environment_find("WEFT_TEST_LATE");
	atomic_store(&late->stage, 2);
	while (atomic_load(&late->stage) < 3)
		;
	late->after = environment_find("WEFT_TEST_LATE");
	return NULL;
}

static void kept(void)
{
	struct late late = {0};
	pthread_t thread;

	EQ(thread_start(&thread, "test", late_main, &late), 0);
	setenv("WEFT_TEST_LATE", "here", 1);
	atomic_store(&late.stage, 1);
	while (atomic_load(&late.stage) < 2)
		;
	TRUE(!late.before);
	environment_keep();
	atomic_store(&late.stage, 3);
	pthread_join(thread, NULL);
	EQ_STR(late.after, "here");
}

/* Parameters that such a thread reads while the program moves its environment about. */
static void *read_main(void *arg)
{
	atomic_bool *is_over = arg;

	while (!atomic_load(is_over)) {
		param_forget(PARAM_STALL);
		EQ(param_int(PARAM_STALL), 7);
	}
	return NULL;
}

static void move_about(void)
{
	char name[NAME_BYTES];

	for (int i = 0; i < CHANGES; i++) {
		snprintf(name, sizeof(name), "OTHER_%d", i);
		setenv(name, "1", 1);
	}
	for (int i = 0; i < CHANGES; i++) {
		snprintf(name, sizeof(name), "OTHER_%d", i);
		unsetenv(name);
	}
}

static void changes(void)
{
	atomic_bool is_over = false;
	pthread_t thread;

	setenv(param_info(PARAM_STALL)->name, "7", 1);
	environment_keep();
	EQ(thread_start(&thread, "test", read_main, &is_over), 0);
	move_about();
	atomic_store(&is_over, true);
	pthread_join(thread, NULL);
}

static void *nothing(void *arg)
{
	return arg;
}

/* A thread of the program's that is in one of our calls, which start threads. */
static void *start_main(void *arg)
{
	atomic_bool *is_over = arg;

	while (!atomic_load(is_over)) {
		pthread_t thread;

		EQ(thread_start(&thread, "test", nothing, NULL), 0);
		pthread_join(thread, NULL);
	}
	return NULL;
}

static void starts(void)
{
	atomic_bool is_over = false;
	pthread_t thread;

	EQ(pthread_create(&thread, NULL, start_main, &is_over), 0);
	for (int i = 0; i < TURNS; i++)
		move_about();
	atomic_store(&is_over, true);
	pthread_join(thread, NULL);
}

int main(void)
{
	values();
	whole();
	kept();
	changes();
	starts();
	return 0;
}
