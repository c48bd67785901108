// SPDX-License-Identifier: Apache-2.0
// Empty: it carries the headers that tests share, see tests/CMakeLists.txt.
