#include "trace/trace_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/json/json.h"
#include "trace/trace_format.h"

namespace sluice::trace {
namespace {

static_assert(std::endian::native == std::endian::little, "traces are little-endian");

std::string text_of(std::uint32_t number) { return {reinterpret_cast<const char*>(&number), sizeof number}; }

// Docs, section 2: one number per layer, or N numbers where they differ.
template <class Size>
Json sizes_json(const TraceHeader& header, Size&& size) {
  Json rows = Json::array();
  for (std::uint32_t layer = 0; layer < header.layers; ++layer) {
    Json row = Json::array();
    for (std::uint32_t e = 0; e < header.experts; ++e)
      row.push_back(
          size(experts::ExpertId{static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(e)}));
    const bool equal =
        std::all_of(row.begin(), row.end(), [&](const Json& value) { return value == row[0]; });
    rows.push_back(equal ? row[0] : std::move(row));
  }
  return rows;
}

// Reads one member of "sizes": per layer a number, or an array of N.
std::vector<Bytes> read_sizes(const JsonObject& sizes, std::string_view key, std::uint32_t layers,
                              std::uint32_t experts) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 48;
  const Json* rows = sizes.find(key);
  if (rows == nullptr || !rows->is_array() || rows->size() != layers)
    sizes.fail(key, fmt::format("an array of {} layers", layers));
  std::vector<Bytes> all;
  all.reserve(std::size_t{layers} * experts);
  const auto number = [&](const Json& value) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMost)
      sizes.fail(key, "numbers from 0 to 2^48");
    return value.get<Bytes>();
  };
  for (const Json& row : *rows) {
    if (!row.is_array()) {
      all.insert(all.end(), experts, number(row));
      continue;
    }
    if (row.size() != experts)
      sizes.fail(key, fmt::format("a number, or {} numbers, for each layer", experts));
    for (const Json& value : row) all.push_back(number(value));
  }
  return all;
}

void read_all_sizes(const JsonObject& sizes, TraceHeader& header) {
  const auto read = [&](std::string_view key) {
    return read_sizes(sizes, key, header.layers, header.experts);
  };
  const auto full = read("full"), sm = read("sm"), exp = read("exp"), disk = read("disk"),
             exp_disk = read("exp_disk");
  std::vector<Bytes> msb(full.size()), lsb(full.size());
  if (sizes.find("msb") != nullptr) {  // only for models in slices
    msb = read("msb");
    lsb = read("lsb");
  }
  for (std::uint32_t layer = 0; layer < header.layers; ++layer)
    for (std::uint32_t e = 0; e < header.experts; ++e) {
      const std::size_t i = std::size_t{layer} * header.experts + e;
      if (exp_disk[i] > disk[i]) sizes.fail("exp_disk", "no more than `disk`");
      header.sizes->set({static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(e)},
                        {.full = full[i], .sm = sm[i], .exp = exp[i], .msb = msb[i], .lsb = lsb[i]}, disk[i],
                        exp_disk[i]);
    }
}

bool is_predictor_name(std::string_view name) {
  return !name.empty() && name.size() <= kMostPredictorName && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '_';
  });
}

// The members that version 2 adds.
void read_version_2(const JsonObject& object, TraceHeader& header) {
  header.gate_inputs = static_cast<std::uint32_t>(object.integer("gate_inputs", 0, kMostGateInputs));
  const std::string names_of =
      fmt::format("an array of at most {} distinct names of predictors", kMostPredictors);
  const Json* names = object.find("ahead");
  if (names == nullptr || !names->is_array() || names->size() > kMostPredictors)
    object.fail("ahead", names_of);
  for (const Json& name : *names) {
    if (!name.is_string() || !is_predictor_name(name.get<std::string>()) ||
        std::ranges::find(header.ahead, name.get<std::string>()) != header.ahead.end())
      object.fail("ahead", names_of);
    header.ahead.push_back(name.get<std::string>());
  }
  if (header.ahead.empty() && header.gate_inputs == 0)
    object.fail("ahead", "a predictor, or gate inputs: without both the version is 1");
}

struct Head {
  std::uint32_t version = 0;
  std::vector<std::byte> json;
};

// Everything but the content of the JSON.
Head read_head(TraceInput& input) {
  const auto ends = [&](const char* what, std::uint64_t expected) {
    return Error(ErrorKind::kCorrupt, std::string("the file ends within its ") + what)
        .in(input.path(), input.offset())
        .expected(fmt::format("{} bytes of it", expected))
        .found(std::to_string(input.offset()))
        .fix(kCopyAgain);
  };
  if (input.peek(kTraceMagic.size()) != kTraceMagic)
    throw Error(ErrorKind::kInvalid, "not a routing trace")
        .in(input.path(), 0)
        .expected("a file of `sluice trace`")
        .found("another kind of file, or an empty one")
        .fix("record into another file");
  Head head;
  std::vector<std::byte> bytes;
  Xxh3Stream hash;
  if (!input.read(16, bytes)) throw ends("first 16 bytes", 16);
  hash.update(bytes);
  head.version = number_at<std::uint32_t>(bytes, 8);
  const auto length = number_at<std::uint32_t>(bytes, 12);
  if (head.version != kTraceVersion1 && head.version != kTraceVersion2)
    throw Error(ErrorKind::kUnsupported, "unknown version of the trace format")
        .in(input.path(), 8)
        .expected(fmt::format("{} or {}", kTraceVersion1, kTraceVersion2))
        .found(std::to_string(head.version))
        .fix("use the program that recorded it");
  if (length > kMostHeaderBytes)
    throw Error(ErrorKind::kCorrupt, "header length is out of range")
        .in(input.path(), 12)
        .expected(fmt::format("at most {}", kMostHeaderBytes))
        .found(std::to_string(length))
        .fix(kCopyAgain);
  if (!input.read(length, head.json)) throw ends("header", 24 + std::uint64_t{length});
  hash.update(head.json);
  if (!input.read(8, bytes)) throw ends("header", 24 + std::uint64_t{length});
  if (const auto stored = number_at<std::uint64_t>(bytes, 0); stored != hash.digest())
    throw Error(ErrorKind::kCorrupt, "checksum of the header is wrong")
        .in(input.path(), 16 + std::uint64_t{length})
        .expected(hex64(stored))
        .found(hex64(hash.digest()))
        .fix(kCopyAgain);
  return head;
}

}  // namespace

std::uint32_t trace_version(const TraceHeader& header) {
  return header.ahead.empty() && header.gate_inputs == 0 ? kTraceVersion1 : kTraceVersion2;
}

std::string trace_header_bytes(const TraceHeader& header) {
  SLUICE_CHECK(header.identity.has_value() && header.sizes.has_value());
  SLUICE_CHECK(header.ahead.size() <= kMostPredictors && header.gate_inputs <= kMostGateInputs &&
               std::ranges::all_of(header.ahead, is_predictor_name));
  const TraceSizes& sizes = *header.sizes;
  Json members = {
      {"architecture", header.architecture},
      {"layers", header.layers},
      {"experts", header.experts},
      {"top_k", header.top_k},
      {"identity", hex64(*header.identity)},
      {"sizes",
       {{"full", sizes_json(header, [&](experts::ExpertId id) { return sizes.bytes(id).full; })},
        {"sm", sizes_json(header, [&](experts::ExpertId id) { return sizes.bytes(id).sm; })},
        {"exp", sizes_json(header, [&](experts::ExpertId id) { return sizes.bytes(id).exp; })},
        {"disk", sizes_json(header, [&](experts::ExpertId id) { return sizes.disk_bytes(id); })},
        {"exp_disk", sizes_json(header, [&](experts::ExpertId id) { return sizes.exp_disk_bytes(id); })}}}};
  if (header.layers > 0 && header.experts > 0 && sizes.bytes({0, 0}).msb > 0) {
    members["sizes"]["msb"] = sizes_json(header, [&](experts::ExpertId id) { return sizes.bytes(id).msb; });
    members["sizes"]["lsb"] = sizes_json(header, [&](experts::ExpertId id) { return sizes.bytes(id).lsb; });
  }
  const std::uint32_t version = trace_version(header);
  if (version == kTraceVersion2) {
    members["ahead"] = header.ahead;
    members["gate_inputs"] = header.gate_inputs;
  }
  const std::string json = members.dump();
  std::string bytes(kTraceMagic);
  bytes += text_of(version) + text_of(static_cast<std::uint32_t>(json.size())) + json;
  const std::uint64_t hash = xxh3(std::as_bytes(std::span(bytes.data(), bytes.size())));
  return bytes.append(reinterpret_cast<const char*>(&hash), sizeof hash);
}

TraceHeader read_trace_header(TraceInput& input) {
  const Head head = read_head(input);
  const std::string name = input.path() + ": header";
  const Json json = parse_json({reinterpret_cast<const char*>(head.json.data()), head.json.size()}, name);
  const JsonObject object(json, name);
  TraceHeader header;
  header.format = "trace";
  header.architecture = object.string("architecture");
  header.layers = static_cast<std::uint32_t>(object.integer("layers", 1, kMostLayers));
  header.experts = static_cast<std::uint32_t>(object.integer("experts", 1, kMostExperts));
  header.top_k = static_cast<std::uint32_t>(object.integer("top_k", 1, header.experts));
  header.logits = true;
  std::uint64_t identity = 0;
  if (!parse_hex64(object.string("identity"), identity)) object.fail("identity", "16 hexadecimal digits");
  header.identity = identity;
  if (head.version == kTraceVersion2) read_version_2(object, header);
  header.sizes.emplace(header.layers, header.experts, name);
  read_all_sizes(object.object("sizes"), header);
  return header;
}

}  // namespace sluice::trace
