// SPDX-License-Identifier: Apache-2.0
// A C program that knows nothing of berth: loads libraries with dlopen, calls into the last on several threads, closes them,
// and does the same again. Usage: program [OTHER...] LIBBERTH PLUGIN
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

enum { kThreads = 4, kMostLibraries = 16 };

static int (*use_berth)(int);

static void* run(void* number) { return (void*)(long)use_berth((int)(long)number); }

static int use_on_threads(void* plugin) {
  *(void**)&use_berth = dlsym(plugin, "use_berth");
  if (use_berth == NULL) return fprintf(stderr, "no use_berth: %s\n", dlerror()), 1;
  pthread_t threads[kThreads];
  for (long i = 0; i < kThreads; ++i) {
    if (pthread_create(&threads[i], NULL, run, (void*)i) != 0) return fprintf(stderr, "no thread\n"), 1;
  }
  int wrong = use_berth(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    void* answer = NULL;
    pthread_join(threads[i], &answer);
    wrong += answer != NULL;
  }
  return wrong;
}

int main(int count, char** arguments) {
  const char* const berth = arguments[count - 2];
  for (int round = 0; round < 2; ++round) {
    void* opened[kMostLibraries] = {0};
    for (int i = 1; i < count && i < kMostLibraries; ++i) {
      opened[i] = dlopen(arguments[i], RTLD_NOW | RTLD_LOCAL);
      if (opened[i] == NULL) return fprintf(stderr, "dlopen: %s\n", dlerror()), 1;
    }
    if (use_on_threads(opened[count - 1]) != 0) return fprintf(stderr, "berth does not work\n"), 1;
    for (int i = count - 1; i > 0; --i) {
      if (dlclose(opened[i]) != 0) return fprintf(stderr, "dlclose: %s\n", dlerror()), 1;
    }
    // Its threads and exit handlers may still run.
    void* const still = dlopen(berth, RTLD_NOW | RTLD_NOLOAD);
    if (still == NULL) return fprintf(stderr, "dlclose unloaded it\n"), 1;
    dlclose(still);
  }
  puts("loaded, used, closed, and once more");
  return 0;
}
