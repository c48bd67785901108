// SPDX-License-Identifier: Apache-2.0
#include "share/ticket_bytes.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "berth/base/checked.h"
#include "berth/share/ticket.h"

namespace berth::internal::share {

namespace {

constexpr std::size_t kLayoutHead = 16;
constexpr std::size_t kTicketHead = 48;
constexpr std::size_t kFurtherBytes = 8;
constexpr std::uint32_t kTicketMagic = 0x316b'7462;  // "btk1"
constexpr std::uint32_t kTicketMagicOfAnyVersion = kTicketMagic & 0xff'ffff;
constexpr Failure kNoTicket{ErrorCode::format_error, 0, "the bytes are not a whole ticket"};

template <class T>
void append(std::vector<std::byte>& out, T value) {
  const std::size_t at = out.size();
  out.resize(at + sizeof value);
  std::memcpy(out.data() + at, &value, sizeof value);
}

// REQUIRES: at + sizeof(T) <= bytes.size().
template <class T>
T read(std::span<const std::byte> bytes, std::size_t at) noexcept {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::uint32_t sum_of(std::span<const std::byte> bytes) noexcept {
  std::uint32_t sum = 2166136261U;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i < 4 || i >= 8) sum = (sum ^ static_cast<std::uint32_t>(bytes[i])) * 16777619U;
  }
  return sum;
}

// Of the kind no_bytes: there is nothing to import, and nothing that an importer would have to allocate.
bool names_nothing(const TicketContent& content) noexcept {
  const auto& dims = content.layout.shape;
  return std::find(dims.begin(), dims.end(), 0) != dims.end() && content.layout.offset == 0 && content.segment == SegmentId{} &&
         content.name == TicketName{} && content.further.empty();
}

}  // namespace

void append_layout(std::vector<std::byte>& out, const StorageLayout& layout) {
  append(out, static_cast<std::uint8_t>(layout.dtype));
  append(out, static_cast<std::uint8_t>(layout.shape.rank()));
  append(out, static_cast<std::uint8_t>(layout.read_only ? 1 : 0));
  append(out, std::uint8_t{0});
  append(out, std::uint32_t{0});
  append(out, layout.offset);
  for (const std::int64_t dim : layout.shape) append(out, dim);
  for (const std::int64_t stride : layout.strides) append(out, stride);
}

Result<StorageLayout> read_layout(std::span<const std::byte> bytes) {
  constexpr Failure kNoLayout{ErrorCode::format_error, 0, "the layout of the storage is not valid"};
  if (bytes.size() < kLayoutHead) return kNoLayout;
  const auto dtype = read<std::uint8_t>(bytes, 0);
  const std::size_t rank = read<std::uint8_t>(bytes, 1);
  const auto read_only = read<std::uint8_t>(bytes, 2);
  if (dtype >= kDTypeCount || rank > kMaxRank || read_only > 1 || read<std::uint8_t>(bytes, 3) != 0 || read<std::uint32_t>(bytes, 4) != 0)
    return kNoLayout;
  if (bytes.size() != kLayoutHead + 16 * rank) return kNoLayout;
  std::array<std::int64_t, kMaxRank> dims{};
  std::array<std::int64_t, kMaxRank> strides{};
  for (std::size_t i = 0; i < rank; ++i) {
    dims[i] = read<std::int64_t>(bytes, kLayoutHead + 8 * i);
    strides[i] = read<std::int64_t>(bytes, kLayoutHead + 8 * (rank + i));
  }
  if (std::any_of(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(rank), [](std::int64_t dim) { return dim < 0; }))
    return kNoLayout;
  return StorageLayout{.dtype = static_cast<DType>(dtype),
                       .read_only = read_only == 1,
                       .offset = read<std::int64_t>(bytes, 8),
                       .shape = Shape(std::span<const std::int64_t>(dims).first(rank)),
                       .strides = Strides(std::span<const std::int64_t>(strides).first(rank))};
}

bool lies_inside(const StorageLayout& layout, std::uint64_t bytes) noexcept {
  const auto extent = try_extent(layout.shape, layout.strides, layout.dtype);
  const auto first = try_multiply(layout.offset, static_cast<std::int64_t>(size_bytes(layout.dtype)));
  if (!extent || !first || *first < 0 || static_cast<std::size_t>(*first) < extent->before_bytes) return false;
  return fits(static_cast<std::size_t>(*first), extent->from_bytes, bytes);
}

std::vector<std::byte> ticket_bytes(const TicketContent& content) {
  std::vector<std::byte> out;
  out.reserve(kTicketHead + kFurtherBytes * content.further.size() + kLayoutHead + 16 * content.layout.shape.rank());
  append(out, kTicketMagic);
  append(out, std::uint32_t{0});
  append(out, content.segment.high);
  append(out, content.segment.low);
  append(out, content.name.ticket);
  append(out, content.name.generation);
  append(out, content.name.entry);
  append(out, static_cast<std::uint16_t>(content.kind));
  append(out, static_cast<std::uint16_t>(content.further.size()));
  append(out, content.name.entry_generation);
  for (const TicketContent::Further& one : content.further) {
    append(out, one.ticket);
    append(out, one.generation);
  }
  append_layout(out, content.layout);
  const std::uint32_t sum = sum_of(out);
  std::memcpy(out.data() + 4, &sum, sizeof sum);
  return out;
}

Result<TicketContent> read_ticket(std::span<const std::byte> bytes) {
  if (bytes.size() < kTicketHead) return kNoTicket;
  const auto magic = read<std::uint32_t>(bytes, 0);
  if (magic != kTicketMagic && (magic & 0xff'ffff) == kTicketMagicOfAnyVersion)
    return Failure{ErrorCode::version_mismatch, 0, "the ticket was made by another version of berth"};
  if (magic != kTicketMagic || read<std::uint32_t>(bytes, 4) != sum_of(bytes)) return kNoTicket;
  const auto kind = read<std::uint16_t>(bytes, 36);
  if (kind > static_cast<std::uint16_t>(TicketContent::Kind::device_memory))
    return Failure{ErrorCode::unsupported, 0, "the ticket is for memory of a kind that this build cannot import"};
  const std::size_t further = read<std::uint16_t>(bytes, 38);
  if (further >= ExportOptions::kMostImports || further * kFurtherBytes > bytes.size() - kTicketHead) return kNoTicket;
  Result<StorageLayout> layout = read_layout(bytes.subspan(kTicketHead + further * kFurtherBytes));
  if (!layout) return layout.failure();
  TicketContent content{.kind = static_cast<TicketContent::Kind>(kind),
                        .segment = {read<std::uint64_t>(bytes, 8), read<std::uint64_t>(bytes, 16)},
                        .name = {.ticket = read<std::uint32_t>(bytes, 24),
                                 .generation = read<std::uint32_t>(bytes, 28),
                                 .entry = read<std::uint32_t>(bytes, 32),
                                 .entry_generation = read<std::uint64_t>(bytes, 40)},
                        .layout = std::move(*layout)};
  content.further.reserve(further);
  for (std::size_t at = kTicketHead; content.further.size() < further; at += kFurtherBytes)
    content.further.push_back({read<std::uint32_t>(bytes, at), read<std::uint32_t>(bytes, at + 4)});
  if (content.kind == TicketContent::Kind::no_bytes && !names_nothing(content))
    return Failure{ErrorCode::format_error, 0, "the ticket is for a storage without bytes, and has elements or an entry"};
  return content;
}

}  // namespace berth::internal::share
