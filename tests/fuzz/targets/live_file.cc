// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <utility>

#include "berth/base/error.h"
#include "berth/observe/live.h"
#include "fuzz/folder.h"
#include "fuzz/words.h"
#include "observe/live_file.h"
#include "os/system.h"

// The file that a process shows itself in, as `berth top` reads it: whatever is in it, what is shown is valid JSON.
namespace berth::testing::fuzz {
namespace {

using internal::observe::LiveFile;
using internal::observe::LiveName;

// The live file of this process, which holds its lock, and what it contains.
struct Shown {
  MemoryFolder folder{"BERTH_LIVE_DIR"};
  LiveFile file = made();
  int number =
      open((folder / (std::to_string(LiveName::own().process) + '-' + std::to_string(LiveName::own().space))).c_str(), O_RDWR | O_CLOEXEC);

  static LiveFile made() {
    Result<LiveFile> file = LiveFile::make();
    require(file.ok(), "the machine has memory for a live file");
    return std::move(*file);
  }
  ~Shown() { file.remove_name(); }
  // An even sequence: a reader waits for an odd one to end.
  void hold(std::string_view text, std::uint64_t claimed) {
    std::string all(sizeof(LiveFile::Header), '\0');
    const std::uint64_t words[] = {0x6576696c68747265, 1, 2, claimed};
    static_assert(sizeof words == sizeof(LiveFile::Header));
    std::memcpy(all.data(), words, sizeof words);
    all += text.substr(0, LiveFile::kMostText);
    require(pwrite(number, all.data(), all.size(), 0) == static_cast<ssize_t>(all.size()), "the machine has memory for a file");
  }
};

void run(std::string_view bytes) {
  static Shown shown;
  Draw draw(bytes);
  const std::uint8_t lie = draw.below(64);  // one in 64 claims more than there can be, for which a reader waits a while
  const std::uint64_t claimed = lie < 48 ? 0 : draw.number<std::uint64_t>();
  const std::string_view text = draw.rest();
  shown.hold(text, lie < 48 ? text.size() : lie < 63 ? claimed % LiveFile::kMostText : claimed);
  const auto read = read_live(internal::os::process_id());
  if (!read) throw FormatError(ErrorCode::format_error, {"reading a live file", "it is none", "write JSON"});
  require(!to_json(*read).empty() && read->process == internal::os::process_id(), "a process that is shown has its id");
}

const Registered live_file({.name = "live_file",
                            .run = run,
                            .words = json_words({"\"pools\"", "\"tags\"", "\"tag\"", "\"bytes\"", "\"blocks\"", "\"stats\"", "\"program\"",
                                                 "\"device\"", "\"renewals\""})});

}  // namespace
}  // namespace berth::testing::fuzz
