// SPDX-License-Identifier: Apache-2.0
#include "observe/live_file.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "base/text.h"
#include "os/file/named_files.h"
#include "os/file/shared_file.h"
#include "os/system.h"

namespace berth::internal::observe {

namespace {

constexpr std::uint64_t kLiveMagic = 0x6576696c68747265;  // "erthlive"
constexpr std::uint64_t kLiveVersion = 1;
constexpr std::uint64_t kLockByte = 0;
constexpr int kAttempts = 100;

std::string folder_name() {
  if (const auto chosen = os::environment("BERTH_LIVE_DIR")) return *chosen;
  return text::join("/dev/shm/berth-live-", os::user_id());
}

// The last to leave removes the folder, unless it was given. Processes that come meanwhile make it again.
void remove_folder_if_empty() {
  if (!os::environment("BERTH_LIVE_DIR")) os::remove_empty_folder(folder_name().c_str());
}

// The text as atomic words, which another process may be writing: a reader checks the sequence afterwards.
// Words are stored with release and loaded with acquire, instead of fences: a reader that has loaded a new word
// also sees that the sequence is odd or has changed. The thread sanitizer does not understand fences.
std::uint64_t* words_of(void* mapped) noexcept {
  return reinterpret_cast<std::uint64_t*>(static_cast<std::byte*>(mapped) + sizeof(LiveFile::Header));
}

void store_text(void* mapped, std::string_view text) noexcept {
  std::uint64_t* to = words_of(mapped);
  for (std::size_t at = 0; at < text.size(); at += sizeof *to) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, std::min(sizeof word, text.size() - at));
    __atomic_store_n(to++, word, __ATOMIC_RELEASE);
  }
}

std::string load_text(void* mapped, std::size_t bytes) {
  std::string text(bytes, '\0');
  const std::uint64_t* from = words_of(mapped);
  for (std::size_t at = 0; at < bytes; at += sizeof *from) {
    const std::uint64_t word = __atomic_load_n(from++, __ATOMIC_ACQUIRE);
    std::memcpy(text.data() + at, &word, std::min(sizeof word, bytes - at));
  }
  return text;
}

std::optional<std::string> read_mapped(void* mapped) {
  auto* const header = static_cast<LiveFile::Header*>(mapped);
  if (header->magic != kLiveMagic || header->version != kLiveVersion) return std::nullopt;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    // acquire, here and for each word: the text is read between the two loads of the sequence.
    const std::uint64_t before = header->sequence.load(std::memory_order_acquire);
    const std::uint64_t bytes = header->bytes.load(std::memory_order_acquire);
    if (before % 2 == 0 && before != 0 && bytes <= LiveFile::kMostText) {
      std::string text = load_text(mapped, bytes);
      if (header->sequence.load(std::memory_order_relaxed) == before) return text;
    }
    os::sleep_us(200);
  }
  return std::nullopt;
}

bool is_own(const os::FileFacts& facts) noexcept {
  return facts.is_regular && facts.user == os::user_id() && (facts.mode & 077) == 0 && facts.bytes == LiveFile::kBytes;
}

// "4711-4026531836"
std::string file_name(const LiveName& name) { return text::join(name.process, '-', name.space); }

std::optional<LiveName> parse_name(std::string_view text) {
  LiveName name;
  const char* const end = text.data() + text.size();
  const auto [dash, error] = std::from_chars(text.data(), end, name.process);
  if (error != std::errc() || dash == end || *dash != '-') return std::nullopt;
  const auto [stop, wrong] = std::from_chars(dash + 1, end, name.space);
  if (wrong != std::errc() || stop != end) return std::nullopt;
  return name;
}

}  // namespace

namespace {

// Whether the process of the file is dead. Then its name is removed, unless it refers to a new file by now.
bool remove_if_dead(int folder, const std::string& called, int file, const os::FileFacts& facts) {
  const Result<bool> alive = os::is_byte_locked(file, kLockByte);
  if (!alive || *alive) return false;
  const Result<os::FileFacts> there = os::facts_of_name(folder, called.c_str());
  if (there && there->same_file(facts)) (void)os::remove_name(folder, called.c_str()).ok();
  return true;
}

// What processes have left that were killed, and that nobody has looked at.
void remove_the_dead(int folder) {
  const Result<std::vector<std::string>> all = os::names_in(folder);
  if (!all) return;
  for (const std::string& called : *all) {
    if (!parse_name(called)) continue;
    const Result<os::Descriptor> file = os::open_named(folder, called.c_str());
    if (!file) continue;
    const Result<os::FileFacts> facts = os::facts_of(file->number());
    if (facts && is_own(*facts)) (void)remove_if_dead(folder, called, file->number(), *facts);
  }
}

}  // namespace

LiveName LiveName::own() noexcept { return {os::process_id(), os::process_space()}; }

LiveFile::LiveFile(const LiveName& name, os::Descriptor lock, const os::FileFacts& file, void* mapped) noexcept
    : name_(name), lock_(std::move(lock)), file_(file), mapped_(mapped) {}
LiveFile::LiveFile(LiveFile&& other) noexcept
    : name_(other.name_), lock_(std::move(other.lock_)), file_(other.file_), mapped_(std::exchange(other.mapped_, nullptr)) {}
LiveFile& LiveFile::operator=(LiveFile&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(lock_, other.lock_);
  std::swap(file_, other.file_);
  std::swap(mapped_, other.mapped_);
  return *this;
}
LiveFile::~LiveFile() {
  if (!has_lock()) (void)lock_.take();
  if (mapped_ != nullptr) os::unmap(mapped_, kBytes);
}

Result<LiveFile> LiveFile::make(const LiveName& name) noexcept {
  constexpr int kTries = 16;
  for (int i = 1;; ++i) {
    Result<LiveFile> made = try_make(name);
    if (made || i == kTries || made.failure().code != ErrorCode::not_found) return made;
  }
}

Result<LiveFile> LiveFile::try_make(const LiveName& name) noexcept {
  try {
    Result<os::Descriptor> folder = os::open_own_folder(folder_name().c_str(), true);
    if (!folder) return folder.failure();
    remove_the_dead(folder->number());
    Result<os::Descriptor> file = os::make_unnamed_file(folder->number());
    if (!file) return file.failure();
    if (const Status sized = os::set_file_size(file->number(), kBytes); !sized) return sized.failure();
    if (const Status given = os::allocate_range(file->number(), 0, kBytes); !given) return given.failure();
    const Result<os::FileFacts> facts = os::facts_of(file->number());
    if (!facts) return facts.failure();
    const Result<bool> locked = os::try_lock_byte(file->number(), kLockByte);
    if (!locked) return locked.failure();
    const Result<void*> mapped = os::map_file_range(file->number(), 0, kBytes, os::Access::write);
    if (!mapped) return mapped.failure();
    LiveFile made(name, std::move(*file), *facts, *mapped);
    new (*mapped) Header{kLiveMagic, kLiveVersion, 0, 0};
    const std::string called = file_name(name);
    // The file of a dead process that had this id before.
    (void)os::remove_name(folder->number(), called.c_str()).ok();
    if (const Status named = os::give_name(made.lock_.number(), folder->number(), called.c_str()); !named) return named.failure();
    return made;
  } catch (const std::bad_alloc&) {
    return Failure{ErrorCode::out_of_memory, 0, "no heap for the file's name"};
  }
}

void LiveFile::write(std::string_view text) noexcept {
  auto* const header = static_cast<Header*>(mapped_);
  const std::uint64_t before = header->sequence.load(std::memory_order_relaxed);
  header->sequence.store(before + 1, std::memory_order_relaxed);
  // release: a reader that sees it, or any of the text, also sees the odd sequence.
  header->bytes.store(text.size(), std::memory_order_release);
  store_text(mapped_, text);
  header->sequence.store(before + 2, std::memory_order_release);
}

bool LiveFile::has_lock() const noexcept {
  const Result<os::FileFacts> now = os::facts_of(lock_.number());
  return now && now->same_file(file_);
}

bool LiveFile::is_seen() const noexcept {
  const Result<os::FileFacts> now = os::facts_of(lock_.number());
  return now && now->same_file(file_) && now->links != 0;
}

void LiveFile::close_in_child() noexcept { has_lock() ? lock_.close() : (void)lock_.take(); }

void LiveFile::remove_name() noexcept {
  try {
    const Result<os::Descriptor> folder = os::open_own_folder(folder_name().c_str(), false);
    if (!folder) return;
    const std::string called = file_name(name_);
    const Result<os::FileFacts> there = os::facts_of_name(folder->number(), called.c_str());
    if (there && there->same_file(file_)) (void)os::remove_name(folder->number(), called.c_str()).ok();
    remove_folder_if_empty();
  } catch (const std::bad_alloc&) {  // the next reader removes it
  }
}

std::optional<std::string> LiveFile::read(const LiveName& name) {
  const Result<os::Descriptor> folder = os::open_own_folder(folder_name().c_str(), false);
  if (!folder) return std::nullopt;
  const std::string called = file_name(name);
  const Result<os::Descriptor> file = os::open_named(folder->number(), called.c_str());
  if (!file) return std::nullopt;
  const Result<os::FileFacts> facts = os::facts_of(file->number());
  if (!facts || !is_own(*facts)) return std::nullopt;
  if (remove_if_dead(folder->number(), called, file->number(), *facts)) {
    remove_folder_if_empty();
    return std::nullopt;
  }
  const Result<void*> mapped = os::map_file_range(file->number(), 0, kBytes, os::Access::read);
  if (!mapped) return std::nullopt;
  std::optional<std::string> text = read_mapped(*mapped);
  os::unmap(*mapped, kBytes);
  return text;
}

std::vector<LiveName> LiveFile::names() {
  std::vector<LiveName> found;
  const Result<os::Descriptor> folder = os::open_own_folder(folder_name().c_str(), false);
  if (!folder) return found;
  const Result<std::vector<std::string>> all = os::names_in(folder->number());
  if (!all) return found;
  for (const std::string& one : *all) {
    if (const auto name = parse_name(one)) found.push_back(*name);
  }
  return found;
}

}  // namespace berth::internal::observe
