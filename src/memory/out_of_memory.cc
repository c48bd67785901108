// SPDX-License-Identifier: Apache-2.0
#include "berth/memory/out_of_memory.h"

#include <cmath>
#include <utility>

#include "base/refuse.h"
#include "base/text.h"
#include "berth/base/json.h"

namespace berth {

using namespace internal;

namespace {

std::string asked_text(const OutOfMemoryReport& report) {
  return text::join("allocating ", text::bytes(report.requested_bytes), " with ", report.allocator, " on ", report.device.to_string());
}

std::string why_text(const OutOfMemoryReport& report) {
  return text::join("refused by ", report.refused_by, ": ", text::bytes(report.in_use_bytes), " in use, ", text::bytes(report.cached_bytes),
                    " cached, ", text::bytes(report.device_free_bytes), " of ", text::bytes(report.device_total_bytes),
                    " free on the device");
}

std::string help_text(const OutOfMemoryReport& report) {
  std::string out;
  bool is_freeing = false;
  if (report.process_limited) {
    out = base::kRaiseLimit;
  } else if (report.would_be_enough_bytes == 0) {
    out = report.requested_bytes > report.device_total_bytes && report.device_total_bytes != 0
              ? text::join("ask for less: the device has ", text::bytes(report.device_total_bytes), " in all")
              : "ask for less, or use a device with more memory";
  } else if (report.limit_bytes != 0 && report.requested_bytes > report.limit_bytes) {
    out = text::join("raise the limit by ", text::bytes(report.would_be_enough_bytes), ", or ask for less");
  } else {
    is_freeing = true;
    out = text::join("free ", text::bytes(report.would_be_enough_bytes), " more",
                     report.limit_bytes != 0 ? ", or raise the limit by as much" : "");
  }
  if (is_freeing && !report.top_holders.empty()) {
    const Holder& top = report.top_holders.front();
    out += text::join("; most is held by ", top.tag ? text::quoted(top.tag.word()) : "untagged blocks", " (", text::bytes(top.bytes), ')');
  }
  return out;
}

}  // namespace

OutOfMemory::OutOfMemory(OutOfMemoryReport report)
    : Error(ErrorCode::out_of_memory, {asked_text(report), why_text(report), help_text(report)},
            {{"requested", report.requested_bytes},
             {"limit", report.limit_bytes},
             {"in_use", report.in_use_bytes},
             {"cached", report.cached_bytes},
             {"available", report.device_free_bytes},
             {"would_be_enough", report.would_be_enough_bytes}}),
      report_(std::make_shared<const OutOfMemoryReport>(std::move(report))) {}

OutOfMemory::~OutOfMemory() = default;

std::string OutOfMemoryReport::to_string() const {
  const auto line = [](std::string_view label, const std::string& value) {
    return text::join("  ", label, std::string(label.size() < 18 ? 18 - label.size() : 1, ' '), value, '\n');
  };
  std::string out =
      text::join("out of memory: ", text::bytes(requested_bytes), " on ", device.to_string(), ", refused by ", refused_by, '\n');
  out += line("allocator", allocator);
  if (tag) out += line("tag", text::printable(tag.word()));
  if (limit_bytes != 0) out += line("limit", text::bytes(limit_bytes));
  out += line("in use", text::bytes(in_use_bytes));
  const std::string pinned = pinned_bytes == 0 ? "" : text::join(", ", text::bytes(pinned_bytes), " in pieces that are partly live");
  out += line("cached", text::join(text::bytes(cached_bytes), ", largest free run ", text::bytes(largest_free_run_bytes),
                                   ", fragmentation ", std::lround(100 * fragmentation()), " %", pinned));
  out += line("device", text::join(text::bytes(device_free_bytes), " free of ", text::bytes(device_total_bytes)));
  for (std::size_t i = 0; i < top_holders.size(); ++i) {
    const Holder& holder = top_holders[i];
    out += line(i == 0 ? "held by" : "",
                text::join(text::bytes(holder.bytes), " in ", holder.blocks, holder.blocks == 1 ? " block  " : " blocks  ",
                           holder.tag ? text::printable(holder.tag.word()) : "(no tag)"));
  }
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const AllocatorShare& share = shares[i];
    out += line(i == 0 ? "taken by" : "", text::join(text::bytes(share.committed_bytes), ", of which ", text::bytes(share.in_use_bytes),
                                                     " in use  ", share.allocator, " on ", share.device.to_string()));
  }
  for (std::size_t i = 0; i < tried.size(); ++i) out += line(i == 0 ? "tried" : "", tried[i]);
  if (would_be_enough_bytes != 0) out += line("would be enough", text::bytes(would_be_enough_bytes) + " more");
  return out;
}

void OutOfMemoryReport::write_json(JsonWriter& json) const {
  json.begin_object();
  json.member("device", device.to_string()).member("allocator", allocator).member("requested_bytes", requested_bytes);
  json.member("alignment", alignment).member("tag", tag.word()).member("refused_by", refused_by).member("limit_bytes", limit_bytes);
  json.member("in_use_bytes", in_use_bytes).member("cached_bytes", cached_bytes).member("pinned_bytes", pinned_bytes);
  json.member("largest_free_run_bytes", largest_free_run_bytes);
  json.member("fragmentation", fragmentation())
      .member("device_total_bytes", device_total_bytes)
      .member("device_free_bytes", device_free_bytes)
      .member("process_limited", process_limited);
  json.key("top_holders").begin_array();
  for (const Holder& holder : top_holders) {
    json.begin_object().member("tag", holder.tag.word()).member("bytes", holder.bytes).member("blocks", holder.blocks).end_object();
  }
  json.end_array().key("shares").begin_array();
  for (const AllocatorShare& share : shares) {
    json.begin_object().member("allocator", share.allocator).member("allocator_id", share.allocator_id);
    json.member("device", share.device.to_string()).member("committed_bytes", share.committed_bytes);
    json.member("in_use_bytes", share.in_use_bytes).end_object();
  }
  json.end_array().key("tried").begin_array();
  for (const std::string& attempt : tried) json.value(attempt);
  json.end_array().member("would_be_enough_bytes", would_be_enough_bytes).end_object();
}

}  // namespace berth
