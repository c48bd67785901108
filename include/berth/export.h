// SPDX-License-Identifier: Apache-2.0
#pragma once

// Marks what the library offers to its users; everything else is compiled with hidden visibility.
// The same marking serves the static library, where it does nothing.
#define BERTH_EXPORT [[gnu::visibility("default")]]
// A private part of such a class.
#define BERTH_HIDDEN [[gnu::visibility("hidden")]]
