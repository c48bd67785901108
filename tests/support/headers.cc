// SPDX-License-Identifier: Apache-2.0
// Empty: it carries the precompiled headers of the tests, see tests/CMakeLists.txt.
