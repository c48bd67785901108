// SPDX-License-Identifier: Apache-2.0
#pragma once

// All public headers, for tests: compiled once.
#include "berth/berth.h"
#include "berth/extend.h"
#include "berth/observe.h"
#include "berth/plan.h"
