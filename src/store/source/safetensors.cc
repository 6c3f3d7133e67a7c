#include "store/source/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "store/json_reader.h"

namespace sluice::store {
namespace {

constexpr Bytes kLengthBytes = 8;
constexpr std::string_view kDownloadAgain = "download the file again";

Bytes little_endian_u64(std::string_view bytes) {
  Bytes value = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// Header length N, checked against the size of the file.
Bytes checked_length(std::string_view head, Bytes file_bytes, const std::string& path) {
  if (file_bytes < kLengthBytes || head.size() < kLengthBytes) {
    throw Error(ErrorKind::kInvalid, "too short for a safetensors file")
        .in(path)
        .expected("at least 8 bytes")
        .found(fmt::format("{}", std::min<Bytes>(file_bytes, head.size())))
        .fix(kDownloadAgain);
  }
  const Bytes length = little_endian_u64(head);
  const Bytes room = file_bytes - kLengthBytes;
  if (length > room || length > kSafetensorsMaxHeaderBytes || length < 2) {
    const bool long_file = room > kSafetensorsMaxHeaderBytes;
    throw Error(ErrorKind::kInvalid, length < 2  ? "the safetensors header is empty"
                                     : long_file ? "the safetensors header is larger than any legal one"
                                                 : "the safetensors header is longer than the file")
        .in(path, 0)
        .expected(fmt::format("a header of 2 to {} bytes", std::min(room, kSafetensorsMaxHeaderBytes)))
        .found(fmt::format("{}", length))
        .fix(kDownloadAgain);
  }
  return length;
}

// One "NAME": {…} entry; offsets still relative to the data.
struct Entry {
  SafetensorsTensor tensor;
  Bytes at = 0;  // where the entry is in the file, for errors
};

Error tensor_error(const std::string& path, const Entry& entry, std::string_view message) {
  return Error(ErrorKind::kInvalid, fmt::format("tensor \"{}\" {}", entry.tensor.info.name, message))
      .in(path, entry.at)
      .fix("download the file again");
}

Entry read_entry(JsonReader& json, const std::string& name, const std::string& path) {
  Entry entry;
  entry.tensor.info.name = name;
  entry.at = json.value_offset();
  bool has_dtype = false, has_shape = false, has_offsets = false;
  Bytes begin = 0, end = 0;
  std::string key;
  json.begin_object();
  while (json.next_key(key)) {
    const auto once = [&](bool& seen) {
      if (seen) throw tensor_error(path, entry, fmt::format("has \"{}\" twice", key)).fix(kDownloadAgain);
      seen = true;
    };
    if (key == "dtype") {
      once(has_dtype);
      const std::string text = json.read_string();
      const std::optional<DType> type = dtype_from_name(text);
      if (!type) {
        throw Error(ErrorKind::kUnsupported, fmt::format("tensor \"{}\" has an unknown element type", name))
            .in(path, entry.at)
            .expected("BF16, F16, F32 or another type of the safetensors format")
            .found(fmt::format("\"{}\"", text))
            .fix("use a checkpoint in BF16, F16 or F32");
      }
      entry.tensor.info.dtype = *type;
    } else if (key == "shape") {
      once(has_shape);
      json.begin_array();
      while (json.next_item()) {
        if (entry.tensor.info.shape.size() >= 16)
          throw tensor_error(path, entry, "has more than 16 dimensions");
        entry.tensor.info.shape.push_back(json.read_number());
      }
    } else if (key == "data_offsets") {
      once(has_offsets);
      std::size_t count = 0;
      json.begin_array();
      while (json.next_item()) {
        const std::uint64_t value = json.read_number();
        if (count < 2) (count == 0 ? begin : end) = value;
        ++count;
      }
      if (count != 2) {
        throw tensor_error(path, entry, "has illegal data_offsets")
            .expected("[begin, end]")
            .found(fmt::format("{} numbers", count));
      }
    } else {
      throw tensor_error(path, entry, "has an unknown field")
          .expected("dtype, shape and data_offsets")
          .found(fmt::format("\"{}\"", key))
          .fix(kDownloadAgain);
    }
  }
  for (const auto& [seen, field] :
       {std::pair{has_dtype, "dtype"}, {has_shape, "shape"}, {has_offsets, "data_offsets"}}) {
    if (!seen) throw tensor_error(path, entry, fmt::format("has no \"{}\"", field)).fix(kDownloadAgain);
  }
  if (begin > end) {
    throw tensor_error(path, entry, "ends before it begins")
        .expected("begin <= end")
        .found(fmt::format("[{}, {}]", begin, end))
        .fix(kDownloadAgain);
  }
  entry.tensor.offset = begin;
  entry.tensor.length = end - begin;
  return entry;
}

void check_sizes(const std::string& path, const std::vector<Entry>& entries, Bytes data_bytes) {
  for (const Entry& entry : entries) {
    const SafetensorsTensor& tensor = entry.tensor;
    if (tensor.offset > data_bytes || tensor.length > data_bytes - tensor.offset) {
      throw tensor_error(path, entry, "lies outside of the file")
          .expected(fmt::format("an end of at most {}", data_bytes))
          .found(fmt::format("[{}, {}]", tensor.offset, tensor.offset + tensor.length))
          .fix("the file is cut short or was damaged: download it again");
    }
    const std::optional<Bytes> wanted = tensor.info.checked_bytes();
    if (!wanted)
      throw tensor_error(path, entry, "has a shape that overflows")
          .expected("fewer than 2^64 bytes")
          .found(tensor.info.shape_text())
          .fix(kDownloadAgain);
    if (*wanted != tensor.length) {
      throw tensor_error(path, entry, "has a wrong size for its shape")
          .expected(fmt::format("{} bytes for {} {}", *wanted, dtype_name(tensor.info.dtype),
                                tensor.info.shape_text()))
          .found(fmt::format("{}", tensor.length))
          .fix(kDownloadAgain);
    }
  }
}

// Checks that tensors lie back to back and fill the data exactly. `entries` are ascending by offset, then
// length.
void check_cover(const std::string& path, const std::vector<Entry>& entries, Bytes head_bytes,
                 Bytes data_bytes) {
  Bytes covered = 0;
  for (const Entry& entry : entries) {
    if (entry.tensor.offset < covered) {
      throw tensor_error(path, entry, "overlaps the one before it")
          .expected(fmt::format("data_offsets from {}", covered))
          .found(fmt::format("{}", entry.tensor.offset))
          .fix(kDownloadAgain);
    }
    if (entry.tensor.offset > covered) {
      throw tensor_error(path, entry, "leaves a hole in the data before it")
          .expected(fmt::format("data_offsets from {}", covered))
          .found(fmt::format("{}", entry.tensor.offset))
          .fix(kDownloadAgain);
    }
    covered += entry.tensor.length;
  }
  if (covered != data_bytes) {
    throw Error(ErrorKind::kInvalid, "bytes follow the last tensor")
        .in(path, head_bytes + covered)
        .expected(fmt::format("a file of {} bytes", head_bytes + covered))
        .found(fmt::format("{}", head_bytes + data_bytes))
        .fix(kDownloadAgain);
  }
}

void check_names(const std::string& path, const std::vector<Entry>& entries) {
  std::vector<const Entry*> by_name;
  by_name.reserve(entries.size());
  for (const Entry& entry : entries) by_name.push_back(&entry);
  std::sort(by_name.begin(), by_name.end(), [](const Entry* a, const Entry* b) {
    return std::tie(a->tensor.info.name, a->at) < std::tie(b->tensor.info.name, b->at);
  });
  const auto twice = std::adjacent_find(by_name.begin(), by_name.end(), [](const Entry* a, const Entry* b) {
    return a->tensor.info.name == b->tensor.info.name;
  });
  if (twice != by_name.end()) throw tensor_error(path, **(twice + 1), "is listed twice").fix(kDownloadAgain);
}

void read_metadata(JsonReader& json) {
  std::string key, value;
  json.begin_object();
  while (json.next_key(key)) json.read_string(value);
}

}  // namespace

std::string read_safetensors_head(const InputFile& file) {
  std::string head(static_cast<std::size_t>(std::min(file.size(), kLengthBytes)), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(head.data(), head.size())));
  const Bytes length = checked_length(head, file.size(), file.path());
  head.resize(static_cast<std::size_t>(kLengthBytes + length));
  file.read_at(kLengthBytes,
               std::as_writable_bytes(std::span(head.data() + kLengthBytes, head.size() - kLengthBytes)));
  return head;
}

SafetensorsHeader parse_safetensors(std::string_view head, Bytes file_bytes, const std::string& path) {
  const Bytes length = checked_length(head, file_bytes, path);
  if (head.size() < kLengthBytes + length) {
    throw Error(ErrorKind::kInvalid, "the safetensors header is cut short")
        .in(path, head.size())
        .expected(fmt::format("{} bytes", kLengthBytes + length))
        .found(fmt::format("{}", head.size()))
        .fix("download the file again");
  }
  const std::string_view text = head.substr(kLengthBytes, static_cast<std::size_t>(length));
  if (text.front() != '{') {
    throw Error(ErrorKind::kInvalid, "not a safetensors file")
        .in(path, kLengthBytes)
        .expected("'{'")
        .found(fmt::format("byte 0x{:02x}", static_cast<unsigned char>(text.front())))
        .fix(kDownloadAgain);
  }

  JsonReader json(text, path, kLengthBytes);
  std::vector<Entry> entries;
  std::string name;
  bool has_metadata = false;
  json.begin_object();
  while (json.next_key(name)) {
    if (name == "__metadata__") {
      if (has_metadata) throw json.error("\"__metadata__\" is listed twice").fix(kDownloadAgain);
      has_metadata = true;
      read_metadata(json);
    } else {
      entries.push_back(read_entry(json, name, path));
    }
  }
  json.end();

  SafetensorsHeader header;
  header.bytes = kLengthBytes + length;
  const Bytes data_bytes = file_bytes - header.bytes;
  check_names(path, entries);
  check_sizes(path, entries, data_bytes);
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.tensor.offset, a.tensor.length, a.tensor.info.name) <
           std::tie(b.tensor.offset, b.tensor.length, b.tensor.info.name);
  });
  check_cover(path, entries, header.bytes, data_bytes);

  header.tensors.reserve(entries.size());
  for (Entry& entry : entries) {
    entry.tensor.offset += header.bytes;
    header.tensors.push_back(std::move(entry.tensor));
  }
  return header;
}

SafetensorsHeader read_safetensors(const InputFile& file) {
  return parse_safetensors(read_safetensors_head(file), file.size(), file.path());
}

}  // namespace sluice::store
