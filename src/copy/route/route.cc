// SPDX-License-Identifier: Apache-2.0
#include "berth/copy/route.h"

#include <algorithm>

#include "base/text.h"
#include "berth/base/error.h"
#include "berth/base/json.h"
#include "berth/device/backend.h"
#include "copy/route/planner.h"
#include "copy/validate.h"

namespace berth {

using namespace internal;
using namespace internal::copy;

namespace {

void require_addressable(const RouteEnd& end) {
  const auto refuse = [&](ErrorCode code, std::string why, std::string help) {
    throw ArgumentError(code,
                        {text::join("a route over shape ", end.shape.to_string(), " and strides ", end.strides.to_string()), std::move(why),
                         std::move(help)},
                        {{"shape", end.shape.to_string()}, {"strides", end.strides.to_string()}});
  };
  if (end.shape.rank() != end.strides.rank())
    refuse(ErrorCode::size_mismatch, "there is not one stride for each dimension", "use Strides::contiguous(shape)");
  (void)end.shape.size_bytes(end.dtype);
  if (!try_extent(end.shape, end.strides, end.dtype))
    refuse(ErrorCode::out_of_bounds, "its elements lie farther apart than 63 bits can count", "use smaller strides");
}

}  // namespace

Route plan_route(const RouteEnd& source, const RouteEnd& target, const RouteSettings& settings) {
  if (source.shape != target.shape) throw_shapes(source.shape, target.shape);
  require_addressable(source);
  require_addressable(target);
  if (settings.piece_bytes == 0) {
    throw ArgumentError(ErrorCode::invalid_argument,
                        {"a route in pieces of 0 bytes", "nothing would ever arrive", "use pieces of a few megabytes"},
                        {{"piece_bytes", settings.piece_bytes}});
  }
  if (source.shape.num_elements() == 0) return {};
  return plan_steps(source, target, settings);
}

Route plan_route(const StridedSpan& source, const StridedSpan& target) {
  const ValidatedPair pair = validate_pair(source, target);
  return plan_checked(source, target, pair);
}

Route internal::copy::plan_checked(const SpanRef& source, const SpanRef& target, const ValidatedPair& pair) {
  const auto end = [](const SpanRef& span, const Backend& backend, bool mapped) {
    return RouteEnd{span.device, span.dtype, *span.shape, *span.strides, backend.properties().abilities, mapped};
  };
  if (pair.kind == PairKind::nothing) return {};
  RouteSettings settings;
  settings.overlap = pair.kind == PairKind::overlapping;
  settings.source_reaches = pair.source->reaches(target.device);
  settings.target_reaches = pair.target->reaches(source.device);
  return plan_steps(end(source, *pair.source, pair.source_mapped), end(target, *pair.target, pair.target_mapped), settings);
}

std::string_view to_string(StepKind kind) noexcept {
  constexpr std::string_view kNames[] = {"host", "transfer", "peer", "kernel"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view to_string(StepMemory memory) noexcept {
  constexpr std::string_view kNames[] = {"source", "target", "staging", "source_scratch", "target_scratch"};
  return kNames[static_cast<std::size_t>(memory)];
}

std::string_view to_string(Walk walk) noexcept {
  constexpr std::string_view kNames[] = {"whole", "rows", "tiles", "strided"};
  return kNames[static_cast<std::size_t>(walk)];
}

bool Route::uses(StepMemory memory) const noexcept {
  return std::ranges::any_of(steps, [&](const RouteStep& step) { return step.from == memory || step.to == memory; });
}

std::string Route::to_string() const {
  if (steps.empty()) return "nothing to do";
  std::string out;
  for (const RouteStep& step : steps) {
    out += text::join(out.empty() ? "" : "\n", berth::to_string(step.kind), ' ', step.runs_on.to_string(), ": ",
                      berth::to_string(step.from), ' ', berth::to_string(step.from_dtype), " -> ", berth::to_string(step.to), ' ',
                      berth::to_string(step.to_dtype), ", ", berth::to_string(step.walk));
  }
  if (steps.size() > 1) {
    out += text::join("\n", pieces, pieces == 1 ? " piece of " : " pieces of ", piece_elements,
                      piece_elements == 1 ? " element" : " elements");
  }
  if (uses(StepMemory::staging)) out += text::join(", staging on ", staging.to_string());
  if (overlap) out += ", source and target overlap";
  return out;
}

void Route::write_json(JsonWriter& json) const {
  json.begin_object().key("steps").begin_array();
  for (const RouteStep& step : steps) {
    json.begin_object()
        .member("kind", berth::to_string(step.kind))
        .member("runs_on", step.runs_on.to_string())
        .member("from", berth::to_string(step.from))
        .member("from_dtype", berth::to_string(step.from_dtype))
        .member("to", berth::to_string(step.to))
        .member("to_dtype", berth::to_string(step.to_dtype))
        .member("walk", berth::to_string(step.walk))
        .end_object();
  }
  json.end_array().member("num_elements", num_elements).member("piece_elements", piece_elements).member("pieces", pieces).key("staging");
  uses(StepMemory::staging) ? json.value(staging.to_string()) : json.null();
  json.member("overlap", overlap).end_object();
}

}  // namespace berth
