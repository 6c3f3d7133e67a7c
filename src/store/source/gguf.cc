#include "store/source/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/shown_text.h"

namespace sluice::store {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::string_view kAgain = "download the file again";
constexpr Bytes kMostName = 63, kMostKey = 65535;
constexpr std::uint32_t kMostDimensions = 4;

// Reads numbers and strings one after the other; what the file has not is an error before it is read.
class Reader {
 public:
  explicit Reader(const GgufHead& head)
      : head_(head), room_(std::min(head.head_bytes, kGgufMostHeaderBytes)) {}

  Bytes at() const { return at_; }
  Bytes left() const { return room_ - at_; }

  template <class Number>
  Number number(std::string_view what) {
    Number value;
    take(std::as_writable_bytes(std::span(&value, 1)), what);
    return value;
  }
  std::string string(std::string_view what, Bytes most) {
    const Bytes begin = at_;
    const auto length = number<std::uint64_t>(what);
    if (length > std::min(most, left()))
      throw fail(begin, fmt::format("{} is too long", what),
                 fmt::format("at most {} bytes", std::min(most, left())), fmt::format("{}", length));
    std::string text(length, '\0');
    take(std::as_writable_bytes(std::span(text)), what);
    return text;
  }

  Error fail(Bytes at, const std::string& message, const std::string& expected, const std::string& found,
             ErrorKind kind = ErrorKind::kInvalid) const {
    return Error(kind, message).in(head_.path, at).expected(expected).found(found).fix(kAgain);
  }
  Bytes file_bytes() const { return head_.file_bytes; }
  const std::string& path() const { return head_.path; }

 private:
  void take(std::span<std::byte> out, std::string_view what) {
    if (out.size() > left())
      throw fail(at_, fmt::format("the file ends within {}", what), fmt::format("{} bytes", out.size()),
                 left() < head_.file_bytes - at_ ? fmt::format("the end of the {} that a header may take",
                                                               format_bytes(kGgufMostHeaderBytes))
                                                 : fmt::format("{}", left()));
    while (!out.empty()) {
      if (at_ < begin_ || at_ >= begin_ + buffer_.size()) fill();
      const Bytes within = at_ - begin_, count = std::min<Bytes>(out.size(), buffer_.size() - within);
      std::memcpy(out.data(), buffer_.data() + within, count);
      out = out.subspan(count);
      at_ += count;
    }
  }
  void fill() {
    begin_ = at_;
    buffer_.resize(std::min<Bytes>(kMiB / 4, room_ - at_));
    head_.file.read_at(head_.offset + begin_, buffer_);
  }

  const GgufHead& head_;
  const Bytes room_;
  Bytes at_ = 0, begin_ = 0;
  std::vector<std::byte> buffer_;
};

// A type of values: its scalar, and an array of it.
struct ValueType {
  std::string_view name;
  Bytes least;  // bytes of one, at least
  GgufValue (*scalar)(Reader&);
  GgufValue (*array)(Reader&, std::uint64_t count);
};

template <class Stored, class Value>
Value one(Reader& reader) {
  if constexpr (std::is_same_v<Value, std::string>)
    return reader.string("a value", kGgufMostHeaderBytes);
  else
    return static_cast<Value>(reader.number<Stored>("a value"));
}
template <class Stored, class Value>
GgufValue scalar(Reader& reader) {
  return one<Stored, Value>(reader);
}
template <class Stored, class Value>
GgufValue array(Reader& reader, std::uint64_t count) {
  std::vector<Value> values;
  for (std::uint64_t i = 0; i < count; ++i) values.push_back(one<Stored, Value>(reader));
  return values;
}
template <class Stored, class Value>
constexpr ValueType type_of(std::string_view name) {
  return {name, sizeof(Stored), scalar<Stored, Value>, array<Stored, Value>};
}
// By number. A bool is a byte, and a string begins with its length. 9 is an array.
constexpr ValueType kValueTypes[] = {type_of<std::uint8_t, std::uint64_t>("u8"),
                                     type_of<std::int8_t, std::int64_t>("i8"),
                                     type_of<std::uint16_t, std::uint64_t>("u16"),
                                     type_of<std::int16_t, std::int64_t>("i16"),
                                     type_of<std::uint32_t, std::uint64_t>("u32"),
                                     type_of<std::int32_t, std::int64_t>("i32"),
                                     type_of<float, double>("f32"),
                                     type_of<std::uint8_t, bool>("bool"),
                                     type_of<std::uint64_t, std::string>("string"),
                                     {"array", 12, nullptr, nullptr},
                                     type_of<std::uint64_t, std::uint64_t>("u64"),
                                     type_of<std::int64_t, std::int64_t>("i64"),
                                     type_of<double, double>("f64")};
constexpr std::uint32_t kArray = 9;

const ValueType& value_type(Reader& reader, std::string_view what) {
  const Bytes at = reader.at();
  const auto number = reader.number<std::uint32_t>(what);
  if (number >= std::size(kValueTypes))
    throw reader.fail(at, fmt::format("{} is unknown", what),
                      fmt::format("0 to {}", std::size(kValueTypes) - 1), fmt::format("{}", number),
                      ErrorKind::kUnsupported);
  return kValueTypes[number];
}

GgufValue read_value(Reader& reader) {
  const ValueType& type = value_type(reader, "the type of a value");
  if (&type != &kValueTypes[kArray]) return type.scalar(reader);
  const Bytes at = reader.at();
  const ValueType& entries = value_type(reader, "the type of an array's entries");
  if (&entries == &kValueTypes[kArray])
    throw reader.fail(at, "an array of arrays", "entries of another type", "array", ErrorKind::kUnsupported);
  const auto count = reader.number<std::uint64_t>("the length of an array");
  const std::uint64_t most = std::min(kGgufMostEntries, reader.left() / entries.least);
  if (count > most)
    throw reader.fail(at, "an array is too long", fmt::format("at most {} entries", most),
                      fmt::format("{}", count));
  return entries.array(reader, count);
}

void read_keys(Reader& reader, std::uint64_t count, GgufHeader& header) {
  std::unordered_set<std::string> names;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Bytes at = reader.at();
    GgufKey key{.name = reader.string("a key", kMostKey), .value = {}};
    if (key.name.empty() || !names.insert(key.name).second)
      throw reader.fail(at, key.name.empty() ? "a key without a name" : "a key stands twice", "another name",
                        '"' + shown_text(key.name) + '"');
    key.value = read_value(reader);
    header.keys.push_back(std::move(key));
  }
}

void set_alignment(Reader& reader, GgufHeader& header) {
  const GgufValue* const value = header.find("general.alignment");
  if (value == nullptr) return;
  const auto* const number = std::get_if<std::uint64_t>(value);
  if (number == nullptr || !std::has_single_bit(*number) || *number > kMiB)
    throw reader.fail(0, "general.alignment is no alignment", "a power of two, at most 1048576",
                      number == nullptr ? "another type" : fmt::format("{}", *number));
  header.alignment = *number;
}

std::uint64_t read_dimension(Reader& reader, const std::string& tensor) {
  const Bytes at = reader.at();
  const auto dimension = reader.number<std::uint64_t>("a tensor's dimensions");
  if (dimension == 0 || dimension > INT64_MAX)
    throw reader.fail(at, fmt::format("a dimension of tensor \"{}\" is no size", shown_text(tensor)),
                      "1 or more", fmt::format("{}", dimension));
  return dimension;
}

const GgufType& read_type(Reader& reader, const std::string& tensor) {
  const Bytes at = reader.at();
  const auto number = reader.number<std::uint32_t>("a tensor's type");
  if (const GgufType* const type = gguf_type(number)) return *type;
  throw reader
      .fail(at, fmt::format("tensor \"{}\" has an unknown type", shown_text(tensor)),
            "a type of GGUF that is in use", fmt::format("number {}", number), ErrorKind::kUnsupported)
      .fix("use a newer version of Sluice, or a file in another type");
}

// The bytes of all elements; empty where they are more than 2^63.
std::optional<Bytes> length_of(const GgufTensor& tensor) {
  Bytes bytes = tensor.shape.back() / tensor.type->elements;
  if (__builtin_mul_overflow(bytes, tensor.type->bytes, &bytes)) return std::nullopt;
  for (std::size_t i = 0; i + 1 < tensor.shape.size(); ++i)
    if (__builtin_mul_overflow(bytes, tensor.shape[i], &bytes)) return std::nullopt;
  return bytes > INT64_MAX ? std::nullopt : std::optional(bytes);
}

GgufTensor read_tensor(Reader& reader) {
  const Bytes at = reader.at();
  GgufTensor tensor{.name = reader.string("a tensor's name", kMostName), .shape = {}};
  const auto dimensions = reader.number<std::uint32_t>("a tensor's dimensions");
  if (dimensions == 0 || dimensions > kMostDimensions)
    throw reader.fail(at,
                      fmt::format("tensor \"{}\" has a wrong number of dimensions", shown_text(tensor.name)),
                      "1 to 4", fmt::format("{}", dimensions));
  for (std::uint32_t i = 0; i < dimensions; ++i)
    tensor.shape.insert(tensor.shape.begin(), read_dimension(reader, tensor.name));
  tensor.type = &read_type(reader, tensor.name);
  if (tensor.shape.back() % tensor.type->elements != 0)
    throw reader.fail(
        at, fmt::format("rows of tensor \"{}\" are not whole blocks", shown_text(tensor.name)),
        fmt::format("a multiple of {} elements, for {}", tensor.type->elements, tensor.type->name),
        fmt::format("{}", tensor.shape.back()));
  const std::optional<Bytes> length = length_of(tensor);
  if (!length)
    throw reader.fail(at, fmt::format("tensor \"{}\" is larger than the file", shown_text(tensor.name)),
                      fmt::format("at most {} bytes", reader.file_bytes()), "more than 2^63");
  tensor.length = *length;
  tensor.offset = reader.number<std::uint64_t>("a tensor's place");  // still relative to the data
  return tensor;
}

void read_tensors(Reader& reader, std::uint64_t count, GgufHeader& header) {
  std::unordered_set<std::string> names;
  Bytes next = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Bytes at = reader.at();
    GgufTensor tensor = read_tensor(reader);
    if (tensor.name.empty() || !names.insert(tensor.name).second)
      throw reader.fail(at, tensor.name.empty() ? "a tensor without a name" : "a tensor stands twice",
                        "another name", '"' + shown_text(tensor.name) + '"');
    if (tensor.offset != next)
      throw reader.fail(
          at, fmt::format("tensor \"{}\" does not lie behind the one before it", shown_text(tensor.name)),
          fmt::format("place {} of the data", next), fmt::format("{}", tensor.offset));
    const Bytes rest = reader.file_bytes() - std::min(next, reader.file_bytes());
    if (tensor.length > rest)
      throw reader.fail(
          at, fmt::format("tensor \"{}\" is larger than what is left of the file", shown_text(tensor.name)),
          fmt::format("at most {} bytes", rest), fmt::format("{}", tensor.length));
    next = round_up(next + tensor.length, header.alignment);
    header.tensors.push_back(std::move(tensor));
  }
}

// Files are little-endian; of a big-endian one the version comes out turned round.
std::uint32_t read_version(Reader& reader) {
  const Bytes at = reader.at();
  const auto version = reader.number<std::uint32_t>("the version");
  if (version == 2 || version == 3) return version;
  const bool turned = (version & 0xffff) == 0;
  throw Error(ErrorKind::kUnsupported, turned ? "the file is for machines that are big-endian"
                                              : "the file has another version of GGUF")
      .in(reader.path(), at)
      .expected(turned ? "a little-endian file" : "2 or 3")
      .found(turned ? "a big-endian one" : fmt::format("{}", version))
      .fix("download a file that was made for this machine, or newly");
}

std::uint64_t read_count(Reader& reader, std::string_view what, std::uint64_t most) {
  const Bytes at = reader.at();
  const auto count = reader.number<std::uint64_t>(what);
  if (count > most)
    throw reader.fail(at, fmt::format("{} is too large", what), fmt::format("at most {}", most),
                      fmt::format("{}", count));
  return count;
}

}  // namespace

const GgufValue* GgufHeader::find(std::string_view key) const {
  const auto found = std::ranges::find(keys, key, &GgufKey::name);
  return found == keys.end() ? nullptr : &found->value;
}

bool looks_like_gguf(const std::string& path) {
  try {
    const InputFile file = InputFile::open(path);
    std::string magic(kMagic.size(), '\0');
    if (file.size() < magic.size()) return false;
    file.read_at(0, std::as_writable_bytes(std::span(magic)));
    return magic == kMagic;
  } catch (const Error&) {
    return false;
  }
}

GgufHeader read_gguf(const InputFile& file) {
  return read_gguf({file, 0, file.size(), file.path(), file.size()});
}

GgufHeader read_gguf(const GgufHead& head) {
  Reader reader(head);
  const auto magic = reader.number<std::array<char, 4>>("the magic");
  if (std::string_view(magic.data(), magic.size()) != kMagic)
    throw reader.fail(0, "this is no GGUF file", "\"GGUF\"",
                      '"' + shown_text(std::string_view(magic.data(), magic.size())) + '"');
  GgufHeader header;
  header.version = read_version(reader);
  const std::uint64_t tensors = read_count(reader, "the number of tensors", kGgufMostTensors),
                      keys = read_count(reader, "the number of keys", kGgufMostKeys);
  read_keys(reader, keys, header);
  set_alignment(reader, header);
  read_tensors(reader, tensors, header);
  header.data = round_up(reader.at(), header.alignment);
  for (GgufTensor& tensor : header.tensors) {
    tensor.offset += header.data;
    if (tensor.offset > head.file_bytes || tensor.length > head.file_bytes - tensor.offset)
      throw reader.fail(
          tensor.offset, fmt::format("the file ends within tensor \"{}\"", shown_text(tensor.name)),
          fmt::format("{} bytes", tensor.offset + tensor.length), fmt::format("{}", head.file_bytes));
  }
  return header;
}

}  // namespace sluice::store
