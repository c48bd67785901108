// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/output.h"

// The sub-commands. Each prints a table for people, or with `json` one JSON value, and returns how the program exits.
namespace berth::cli {

Exit run_devices(bool json);
Exit run_doctor(bool json);
Exit run_tour();

}  // namespace berth::cli
