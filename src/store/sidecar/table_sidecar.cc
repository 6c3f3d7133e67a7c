#include "store/sidecar/table_sidecar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "store/format.h"

namespace sluice::store {
namespace {

static_assert(std::endian::native == std::endian::little, "tables are used as they are read");

constexpr std::size_t kNameBytes = 16;
constexpr std::string_view kRemoveTables =
    "remove it: what it holds is made again, or read from the files of the model";

struct TableHead {
  std::array<char, kTablesMagic.size()> magic;
  std::uint32_t layout;
  std::uint32_t tables;
  std::uint64_t manifest;
  std::array<char, kNameBytes> kind;
  std::uint32_t version;
  std::uint32_t zero;
};
static_assert(sizeof(TableHead) == 48);

struct TableEntry {
  std::array<char, kNameBytes> name;
  std::uint64_t offset, bytes, xxh3;
};
static_assert(sizeof(TableEntry) == 40);

std::array<char, kNameBytes> packed_name(std::string_view text) {
  SLUICE_CHECK(!text.empty() && text.size() <= kNameBytes, std::string(text));
  std::array<char, kNameBytes> name{};
  std::ranges::copy(text, name.begin());
  return name;
}

std::string unpacked_name(const std::array<char, kNameBytes>& name) {
  return {name.begin(), std::ranges::find(name, '\0')};
}

template <class T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::uint64_t checksum(std::string_view text) { return xxh3(std::as_bytes(std::span(text))); }

Bytes head_bytes(std::size_t tables) {
  return sizeof(TableHead) + tables * sizeof(TableEntry) + sizeof(std::uint64_t);
}

Error malformed(const std::string& name, Bytes offset, std::string_view expected, std::string_view found) {
  return Error(ErrorKind::kInvalid, "not a sidecar of a packed store")
      .in(name, offset)
      .expected(expected)
      .found(found)
      .fix(kRemoveTables);
}

Error damaged(const std::string& name, Bytes offset, std::uint64_t expected, std::uint64_t found) {
  return Error(ErrorKind::kCorrupt, "a sidecar of the store is damaged")
      .in(name, offset)
      .expected("XXH3 " + hex64(expected))
      .found(hex64(found))
      .fix(kRemoveTables);
}

}  // namespace

std::string write_tables(const TableKind& kind, std::uint64_t manifest_checksum,
                         std::span<const NamedTable> tables) {
  SLUICE_CHECK(tables.size() <= kMaxTables);
  std::string out;
  TableHead head{};
  std::ranges::copy(kTablesMagic, head.magic.begin());
  head.layout = kTablesLayout;
  head.tables = static_cast<std::uint32_t>(tables.size());
  head.manifest = manifest_checksum;
  head.kind = packed_name(kind.kind);
  head.version = kind.version;
  append(out, head);
  Bytes end = head_bytes(tables.size());
  for (const NamedTable& table : tables) {
    const Bytes offset = round_up(end, kTableAlignment);
    append(out, TableEntry{packed_name(table.name), offset, table.bytes.size(), xxh3(table.bytes)});
    end = offset + table.bytes.size();
  }
  append(out, checksum(out));
  for (const NamedTable& table : tables) {
    out.resize(round_up(out.size(), kTableAlignment), '\0');
    out.append(reinterpret_cast<const char*>(table.bytes.data()), table.bytes.size());
  }
  return out;
}

TableSidecar::TableSidecar(InputFile file, std::span<const std::byte> memory, std::string name)
    : file_(std::move(file)), memory_(memory), name_(std::move(name)) {
  size_ = file_.fd() >= 0 ? file_.size() : memory_.size();
}

TableSidecar::~TableSidecar() {
  if (file_.fd() >= 0) file_.drop_cache(0, size_);
}

TableSidecar TableSidecar::of_bytes(std::span<const std::byte> bytes, const std::string& name) {
  TableSidecar sidecar({}, bytes, name);
  sidecar.read_head();
  return sidecar;
}

TableSidecar TableSidecar::of_file(InputFile file) {
  file.expect_all();
  std::string name = file.path();
  TableSidecar sidecar(std::move(file), {}, std::move(name));
  sidecar.read_head();
  return sidecar;
}

void TableSidecar::read_at(Bytes offset, std::span<std::byte> out) const {
  SLUICE_CHECK(offset <= size_ && out.size() <= size_ - offset);
  if (file_.fd() >= 0)
    file_.read_at(offset, out);
  else if (!out.empty())
    std::memcpy(out.data(), memory_.data() + offset, out.size());
}

void TableSidecar::read_head() {
  TableHead head{};
  if (size_ < sizeof head) throw malformed(name_, size_, "a head", fmt::format("{} bytes", size_));
  read_at(0, std::as_writable_bytes(std::span(&head, 1)));
  if (std::string_view(head.magic.data(), head.magic.size()) != kTablesMagic)
    throw malformed(name_, 0, kTablesMagic, "something else");
  layout_ = head.layout;
  if (layout_ != kTablesLayout) return;  // from another version of this program: its content is unknown
  head_bytes_ = head_bytes(head.tables);
  if (head.tables > kMaxTables || size_ < head_bytes_)
    throw malformed(name_, offsetof(TableHead, tables),
                    fmt::format("at most {} tables, all listed", kMaxTables),
                    fmt::format("{} in {} bytes", head.tables, size_));
  std::string text(head_bytes_, '\0');
  read_at(0, std::as_writable_bytes(std::span(text)));
  std::uint64_t stated = 0;
  std::memcpy(&stated, text.data() + text.size() - sizeof stated, sizeof stated);
  text.resize(text.size() - sizeof stated);
  if (const std::uint64_t found = checksum(text); found != stated) throw damaged(name_, 0, stated, found);

  kind_ = unpacked_name(head.kind);
  version_ = head.version;
  manifest_ = head.manifest;
  Bytes end = head_bytes_;
  for (std::uint32_t i = 0; i < head.tables; ++i) {
    TableEntry entry{};
    const Bytes at = sizeof head + i * sizeof entry;
    std::memcpy(&entry, text.data() + at, sizeof entry);
    if (entry.offset != round_up(end, kTableAlignment) || entry.offset > size_ ||
        entry.bytes > size_ - entry.offset)
      throw malformed(name_, at, "tables one after the other, in the file",
                      fmt::format("{} bytes at {}", entry.bytes, entry.offset));
    end = entry.offset + entry.bytes;
    tables_.push_back({unpacked_name(entry.name), entry.offset, entry.bytes, entry.xxh3});
  }
  if (end != size_)
    throw malformed(name_, end, "the end of the file", fmt::format("{} bytes more", size_ - end));
}

void TableSidecar::check_kind(const TableKind& kind) const {
  const auto check = [&](bool known, Bytes offset, const std::string& expected, const std::string& found) {
    if (known) return;
    throw Error(ErrorKind::kUnsupported, "the sidecar is of another version of this program")
        .in(name_, offset)
        .expected(expected)
        .found(found)
        .fix(kRemoveTables);
  };
  const auto version_of = [](std::string_view name, std::uint32_t version) {
    return fmt::format("{} {}", name, version);
  };
  check(layout_ == kTablesLayout, offsetof(TableHead, layout), version_of("layout", kTablesLayout),
        version_of("layout", layout_));
  check(kind_ == kind.kind, offsetof(TableHead, kind), std::string(kind.kind), kind_);
  check(version_ == kind.version, offsetof(TableHead, version), version_of("version", kind.version),
        version_of("version", version_));
}

bool TableSidecar::has(std::string_view table) const {
  return std::ranges::find(tables_, table, &Entry::name) != tables_.end();
}

const TableSidecar::Entry& TableSidecar::find(std::string_view table, std::size_t item_bytes) const {
  const auto entry = std::ranges::find(tables_, table, &Entry::name);
  if (entry == tables_.end())
    throw malformed(name_, sizeof(TableHead), fmt::format("a table \"{}\"", table), "none");
  if (entry->bytes % item_bytes != 0)
    throw malformed(name_, entry->offset, fmt::format("items of {} bytes in \"{}\"", item_bytes, table),
                    fmt::format("{} bytes", entry->bytes));
  return *entry;
}

void TableSidecar::read(const Entry& entry, std::span<std::byte> out) const {
  read_at(entry.offset, out);
  if (const std::uint64_t found = xxh3(out); found != entry.xxh3)
    throw damaged(name_, entry.offset, entry.xxh3, found);
}

std::string TableSidecar::read_text(std::string_view table) const {
  const Entry& entry = find(table, 1);
  std::string text(entry.bytes, '\0');
  read(entry, std::as_writable_bytes(std::span(text)));
  return text;
}

void TableSidecar::check_all() const {
  if (layout_ != kTablesLayout)
    throw malformed(name_, offsetof(TableHead, layout), fmt::format("layout {}", kTablesLayout),
                    fmt::format("{}", layout_));
  Bytes end = head_bytes_;
  for (const Entry& entry : tables_) {
    std::array<std::byte, kTableAlignment> padding{};
    const std::span<std::byte> gap = std::span(padding).first(entry.offset - end);
    read_at(end, gap);
    if (const auto byte = std::ranges::find_if(gap, [](std::byte b) { return b != std::byte{0}; });
        byte != gap.end())
      throw Error(ErrorKind::kCorrupt, "a sidecar of the store is damaged")
          .in(name_, end + static_cast<Bytes>(byte - gap.begin()))
          .expected("0")
          .found(fmt::format("{}", static_cast<int>(*byte)));
    std::vector<std::byte> bytes(entry.bytes);
    read(entry, bytes);
    end = entry.offset + entry.bytes;
  }
}

}  // namespace sluice::store
