#include "tokenizer/sentencepiece/protobuf.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "base/error.h"

namespace sluice::tokenizer {

bool ProtobufReader::next() {
  if (rest_.empty()) return false;
  const std::uint64_t key = read_varint();
  const std::uint64_t field = key >> 3;
  const auto wire = static_cast<unsigned>(key & 7);
  if (field == 0 || field > UINT32_MAX) fail("field number out of range");
  if (wire != 0 && wire != 1 && wire != 2 && wire != 5) fail("unknown wire type");
  field_ = static_cast<std::uint32_t>(field);
  wire_ = static_cast<Wire>(wire);
  return true;
}

std::uint64_t ProtobufReader::varint() {
  require(Wire::kVarint);
  return read_varint();
}

float ProtobufReader::fixed32_float() {
  require(Wire::kFixed32);
  const std::string_view bytes = take(4);
  std::uint32_t word = 0;
  for (unsigned i = 0; i < 4; ++i)
    word |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return std::bit_cast<float>(word);
}

std::string_view ProtobufReader::bytes() {
  require(Wire::kLength);
  return take(read_varint());
}

ProtobufReader ProtobufReader::message() {
  const std::string_view inside = bytes();
  return ProtobufReader(inside, name_, offset_ - inside.size());
}

void ProtobufReader::skip() {
  switch (wire_) {
    case Wire::kVarint:
      read_varint();
      return;
    case Wire::kFixed64:
      take(8);
      return;
    case Wire::kLength:
      take(read_varint());
      return;
    case Wire::kFixed32:
      take(4);
      return;
  }
}

void ProtobufReader::fail(std::string_view what) const {
  throw Error(ErrorKind::kInvalid, fmt::format("not a protocol buffer: {}", what))
      .in(name_, offset_)
      .fix("download the tokenizer files again");
}

std::uint64_t ProtobufReader::read_varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(take(1)[0]);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  fail("number of more than ten bytes");
}

std::string_view ProtobufReader::take(std::uint64_t bytes) {
  if (bytes > rest_.size()) fail("the file ends inside a field");
  const std::string_view taken = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  offset_ += bytes;
  return taken;
}

void ProtobufReader::require(Wire wire) const {
  if (wire_ != wire) fail(fmt::format("field {} has another type than expected", field_));
}

}  // namespace sluice::tokenizer
