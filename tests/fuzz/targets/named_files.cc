// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "berth/base/error.h"
#include "berth/share/named.h"
#include "fuzz/file.h"
#include "fuzz/folder.h"
#include "fuzz/tickets.h"

// Named storages whose file another process wrote: what is opened lies in the file, a file that is not berth's is left
// alone, and nothing stays open.
namespace berth::testing::fuzz {
namespace {

constexpr const char* kName = "fuzz";

// A storage of this process, and its file, whose bytes are changed where the input says.
class Storages {
 public:
  void change(Draw& draw) {
    if (file_ < 0 || access((folder_ / kName).c_str(), F_OK) != 0) make();
    std::string bytes = good_;
    for (std::uint8_t left = draw.below(16); left > 0; --left) {
      const std::size_t at = draw.number<std::uint16_t>() % bytes.size();
      bytes[at] = static_cast<char>(draw.byte());
    }
    write(bytes);
  }
  std::size_t size() const noexcept { return good_.size(); }

 private:
  // Its name is gone: the bytes said that nobody has it.
  void make() {
    if (file_ >= 0) close(file_);
    made_.reset();
    made_ = create_shared(kName, {4, 5}, DType::f32);
    read_all(*made_);  // the first copy makes a pool, whose descriptor stays open
    file_ = open((folder_ / kName).c_str(), O_RDWR | O_CLOEXEC);
    struct stat facts {};
    require(fstat(file_, &facts) == 0, "a storage that is made has its file");
    good_.resize(static_cast<std::size_t>(facts.st_size));
    require(pread(file_, good_.data(), good_.size(), 0) == static_cast<ssize_t>(good_.size()), "a file can be read");
  }
  void write(const std::string& bytes) const {
    require(pwrite(file_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()), "a file can be written");
  }

  MemoryFolder folder_{"BERTH_SHM_DIR"};
  std::optional<Storage> made_;
  int file_ = -1;
  std::string good_;
};

void run(std::string_view bytes) {
  static Storages storages;
  Draw draw(bytes);
  storages.change(draw);
  const int next = next_descriptor();
  const bool collects = draw.below(4) == 0;
  for (const NamedShared& one : list_shared())
    require(one.name == kName && (one.is_ours || !one.problem.empty()), "what is listed is named");
  try {
    const Storage y = open_shared(kName, {.read_only = draw.below(2) == 0});
    require(y.buffer().size_bytes() <= storages.size(), "what is opened lies in its file");
    read_all(y);
  } catch (const Error&) {
    if (collects) reap_named();
    require(next_descriptor() == next, "what is refused leaves no descriptor open");
    throw;
  }
  require(next_descriptor() == next, "what is closed leaves no descriptor open");
}

const Registered named_files({.name = "named_files", .run = run});

}  // namespace
}  // namespace berth::testing::fuzz
