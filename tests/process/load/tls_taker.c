// SPDX-License-Identifier: Apache-2.0
// A library that takes static TLS, as OpenMP's and others do.
static __thread char taken[1000] __attribute__((tls_model("initial-exec")));

char* tls_taken(void) { return taken; }
