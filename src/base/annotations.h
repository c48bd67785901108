// SPDX-License-Identifier: Apache-2.0
#pragma once

// Macros for clang's thread-safety analysis; empty for other compilers. `-Wthread-safety` is an error in clang
// builds.
#if defined(__clang__)
#define BERTH_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define BERTH_THREAD_ANNOTATION(x)
#endif

#define BERTH_CAPABILITY(name) BERTH_THREAD_ANNOTATION(capability(name))
#define BERTH_SCOPED_CAPABILITY BERTH_THREAD_ANNOTATION(scoped_lockable)
#define BERTH_GUARDED_BY(mutex) BERTH_THREAD_ANNOTATION(guarded_by(mutex))
#define BERTH_REQUIRES(...) BERTH_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define BERTH_ACQUIRE(...) BERTH_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define BERTH_TRY_ACQUIRE(...) BERTH_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define BERTH_RELEASE(...) BERTH_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define BERTH_NO_THREAD_ANALYSIS BERTH_THREAD_ANNOTATION(no_thread_safety_analysis)
