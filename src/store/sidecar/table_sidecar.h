// A sidecar of tables that programs use directly as read (docs/store-format.md, section 5.1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/bytes.h"
#include "base/files/file.h"

namespace sluice::store {

struct TableKind {
  std::string_view kind;      // a–z, 0–9, '_' and '-'; at most 16 bytes
  std::uint32_t version = 0;  // version of this kind's content
};

struct NamedTable {
  std::string_view name;  // same characters as a kind
  std::span<const std::byte> bytes;
};
template <class T>
NamedTable named_table(std::string_view name, std::span<const T> items) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {name, std::as_bytes(items)};
}

// The bytes of such a sidecar file.
std::string write_tables(const TableKind& kind, std::uint64_t manifest_checksum,
                         std::span<const NamedTable> tables);

// Thread-compatible. Its end drops the pages of the file that were read from the page cache.
class TableSidecar {
 public:
  // `bytes` must outlive this; `name` appears in errors. Reads only the head: Error(kInvalid) or (kCorrupt).
  // Reads nothing of an unknown layout, of which only check_kind() and check_all() may be called.
  static TableSidecar of_bytes(std::span<const std::byte> bytes, const std::string& name);
  static TableSidecar of_file(InputFile file);
  TableSidecar(TableSidecar&&) = default;
  TableSidecar& operator=(TableSidecar&&) = delete;
  ~TableSidecar();

  // Error(kUnsupported) if the layout is unknown, or if the tables are of another kind or version.
  void check_kind(const TableKind& kind) const;
  std::uint64_t manifest_checksum() const { return manifest_; }
  const std::string& name() const { return name_; }

  // The table of this name. Error(kCorrupt) if its checksum is wrong; (kInvalid) if there is no such table,
  // or its size is not a whole number of items.
  template <class T>
  std::vector<T> read(std::string_view table) const {
    static_assert(std::is_trivially_copyable_v<T>);
    const Entry& entry = find(table, sizeof(T));
    std::vector<T> items(entry.bytes / sizeof(T));
    read(entry, std::as_writable_bytes(std::span(items)));
    return items;
  }
  std::string read_text(std::string_view table) const;
  bool has(std::string_view table) const;

  // Checks every byte: tables against their checksums, and zeros between them. Errors as read().
  void check_all() const;

 private:
  struct Entry {
    std::string name;
    Bytes offset = 0, bytes = 0;
    std::uint64_t xxh3 = 0;
  };
  TableSidecar(InputFile file, std::span<const std::byte> memory, std::string name);
  void read_head();
  void read_at(Bytes offset, std::span<std::byte> out) const;
  const Entry& find(std::string_view table, std::size_t item_bytes) const;
  void read(const Entry& entry, std::span<std::byte> out) const;

  InputFile file_;  // if it is not open, the bytes below
  std::span<const std::byte> memory_;
  std::string name_;
  Bytes size_ = 0, head_bytes_ = 0;
  std::string kind_;
  std::uint32_t layout_ = 0, version_ = 0;
  std::uint64_t manifest_ = 0;
  std::vector<Entry> tables_;
};

}  // namespace sluice::store
