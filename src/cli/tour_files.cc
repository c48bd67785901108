// SPDX-License-Identifier: Apache-2.0
#include "cli/tour_files.h"

#include <fmt/core.h>

#include <filesystem>
#include <optional>
#include <string>

#include "base/text.h"
#include "berth/berth.h"
#include "berth/extend.h"
#include "cli/temporary_file.h"

namespace berth::internal::cli {

namespace {

// The last device whose memory the host cannot access.
Device farthest_device() {
  Device found;
  for (const Device device : all_devices()) {
    if (!backend(device).properties().abilities.host_access) found = device;
  }
  return found;
}

void tour_load(const TourVoice& voice, const SafetensorsFile& file, const Storage& weight) {
  const Device device = farthest_device();
  const LoadedTensors loaded = load(file, device, {.dtype = DType::f32});
  const LoadReport& report = loaded.report();
  voice.show(
      fmt::format("m = load(f, \"{}\", {{.dtype = DType::f32}})", device.to_string()),
      fmt::format("{} converted, mode {}, {} of staging", report.converted, to_string(report.mode), text::bytes(report.staging_bytes)));
  voice.check(equal(loaded["layer.0.weight"], weight), "all tensors are there, as f32");
}

}  // namespace

void tour_files(const TourVoice& voice) {
  std::optional<TemporaryFile> temporary;
  const Storage weight = full({512, 1024}, 0.5, DType::f32, "cpu");
  const Storage bias = full({512}, -1, DType::f32, "cpu");
  try {
    temporary.emplace("tour.safetensors");
    save_safetensors(temporary->path(), {{"layer.0.weight", weight.to(DType::bf16)}, {"layer.0.bias", bias}});
  } catch (const Error& error) {  // an unwritable directory is not a failure of the tour
    voice.say(fmt::format("no file: {}: {}", error.asked(), error.why()));
    return;
  }
  const std::string& path = temporary->path();
  const SafetensorsFile opened = open_safetensors(path);
  const Storage mapped = opened["layer.0.weight"];
  voice.show("f = open_safetensors(\"model.safetensors\")",
             fmt::format("{} tensors, {}", opened.size(), text::bytes(opened.tensor_bytes())));
  voice.show("w = f[\"layer.0.weight\"]", fmt::format("{} {}, {}", to_string(mapped.dtype()), mapped.shape().to_string(),
                                                      mapped.is_mapped() ? "mapped, nothing copied" : "read"));
  voice.check(equal(mapped.to(DType::f32), weight) && equal(opened["layer.0.bias"], bias), "every element is what was written");
  tour_load(voice, opened, weight);
  try {
    mapped.fill(0);
    voice.check(false, "a read-only file was written to");
  } catch (const AccessError& error) {
    voice.check(true, fmt::format("writing through it is refused: {}", error.why()));
  }
  std::filesystem::resize_file(path, 4096);
  try {
    (void)mapped.to(DType::f32);
    voice.check(false, "bytes past the end of the file were read");
  } catch (const FormatError& error) {
    voice.check(error.code() == ErrorCode::file_truncated, "the file is truncated: reading it throws, and no SIGBUS is raised");
  }
}

}  // namespace berth::internal::cli
