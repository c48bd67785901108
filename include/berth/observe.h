// SPDX-License-Identifier: Apache-2.0
#pragma once

// Observing: records and their sinks, misuse, traces and replays, snapshots, profiles, leaks, exports and HTML reports.

#include "berth/memory/race_detector.h"
#include "berth/memory/snapshot.h"
#include "berth/memory/trace.h"
#include "berth/memory/track.h"
#include "berth/observe/export.h"
#include "berth/observe/html.h"
#include "berth/observe/live.h"
#include "berth/observe/profiler.h"
#include "berth/observe/replay.h"
#include "berth/observe/snapshot_file.h"
#include "berth/observe/trace_reader.h"
#include "berth/observe/tracker.h"
#include "berth/record/misuse.h"
#include "berth/record/record.h"
#include "berth/record/stack.h"
#include "berth/record/trace_file.h"
