#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/hash.h"
#include "codec/exponents/plane_decoder.h"
#include "store/format.h"
#include "store/json_members.h"
#include "store/manifest.h"

namespace sluice::store {
namespace {

constexpr std::string_view kRestore = "copy the store again, or pack the model again";

CodecChoice read_codec(JsonReader& json) {
  static constexpr std::array<std::string_view, 3> kNames = {"name", "level", "chunks"};
  JsonMembers members(kNames);
  CodecChoice codec;
  std::string key;
  json.begin_object();
  while (json.next_key(key)) {
    switch (members.take(json, key)) {
      case 0: {
        codec.name = json.read_string();
        if (!codec::is_codec(codec.name)) {
          throw Error(ErrorKind::kUnsupported,
                      "the store uses a codec that this version of Sluice does not know")
              .in(json.error("").where(), json.value_offset())
              .found(fmt::format("\"{}\"", codec.name))
              .fix("use a newer version of Sluice");
        }
        break;
      }
      case 1:
        codec.level = json.read_number();
        break;
      case 2:
        codec.chunks = json.read_number();
        break;
    }
  }
  members.need(json);
  return codec;
}

StoredSource read_source(JsonReader& json) {
  static constexpr std::array<std::string_view, 5> kNames = {"path", "size", "sha256", "header", "gguf"};
  JsonMembers members(kNames);
  StoredSource source;
  std::string key;
  json.begin_object();
  while (json.next_key(key)) {
    switch (members.take(json, key)) {
      case 0:
        json.read_string(source.path);
        break;
      case 1:
        source.size = json.read_number();
        break;
      case 2: {
        json.read_string(source.sha256);
        const bool hex = source.sha256.find_first_not_of("0123456789abcdef") == std::string::npos;
        if (source.sha256.size() != 64 || !hex) {
          throw json.error("not a SHA-256")
              .expected("64 lower-case hexadecimal digits")
              .found(fmt::format("\"{}\"", source.sha256));
        }
        break;
      }
      case 3:
      case 4:
        if (source.weights) throw json.error("a file is of two kinds").expected("\"header\" or \"gguf\"");
        source.weights = true;
        source.gguf = key == kNames[4];
        source.header = read_checked_region(json, source.header_xxh3);
        break;
    }
  }
  members.need(json, 3);
  return source;
}

void read_tensor(JsonReader& json, Manifest& manifest) {
  JsonTuple tuple(json);
  TensorInfo info;
  StoredTensor place;
  tuple.next().read_string(info.name);
  const std::string type = tuple.next().read_string();
  const std::optional<DType> dtype = dtype_from_name(type);
  if (!dtype) {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format("tensor \"{}\" has an element type that this version of Sluice does not know", info.name))
        .in(json.error("").where(), json.value_offset())
        .found(fmt::format("\"{}\"", type))
        .fix("use a newer version of Sluice");
  }
  info.dtype = *dtype;
  JsonTuple(tuple.next());  // opens the array of dimensions
  while (json.next_item()) {
    if (info.shape.size() >= 16) throw json.error("a tensor has more than 16 dimensions");
    info.shape.push_back(json.read_number());
  }
  place.source = read_u32(tuple.next());
  place.offset = tuple.next().read_number();
  tuple.end();
  manifest.tensors.push_back(std::move(info));
  manifest.places.push_back(place);
}

// The features of the format; true if the store requires the feature.
struct Requirements {
  bool formats = false, gguf = false, native = false, sliced = false;
};
Requirements read_requirements(JsonReader& json) {
  Requirements found;
  // Ascending: a feature is refused if it, or a later one, has been there.
  const std::pair<std::string_view, bool*> known[] = {{"formats", &found.formats},
                                                      {"gguf", &found.gguf},
                                                      {codec::kNativeCodec, &found.native},
                                                      {"sliced", &found.sliced}};
  std::size_t next = 0;
  json.begin_array();
  while (json.next_item()) {
    const std::string feature = json.read_string();
    const auto* const at = std::find_if(known + next, std::end(known),
                                        [&](const auto& entry) { return entry.first == feature; });
    if (at != std::end(known)) {
      *at->second = true;
      next = static_cast<std::size_t>(at - known) + 1;
      continue;
    }
    throw Error(ErrorKind::kUnsupported,
                "the store needs a feature that this version of Sluice does not have")
        .in(json.error("").where(), json.value_offset())
        .found(fmt::format("\"{}\"", feature))
        .fix("use a newer version of Sluice");
  }
  return found;
}

codec::SliceBits read_slices(JsonReader& json) {
  static constexpr std::array<std::string_view, 3> kNames = {"quantiser", "high", "low"};
  JsonMembers members(kNames);
  std::string key, quantiser;
  std::uint64_t high = 0, low = 0;
  json.begin_object();
  while (json.next_key(key)) {
    switch (members.take(json, key)) {
      case 0:
        quantiser = json.read_string();
        break;
      case 1:
        high = json.read_number();
        break;
      case 2:
        low = json.read_number();
        break;
    }
  }
  members.need(json);
  const auto bits = std::find_if(codec::kStoredSliceBits.begin(), codec::kStoredSliceBits.end(),
                                 [&](codec::SliceBits b) { return b.high == high && b.low == low; });
  if (quantiser != codec::kAmat || bits == codec::kStoredSliceBits.end()) {
    throw Error(ErrorKind::kUnsupported, "the store has slices that this version of Sluice does not know")
        .in(json.error("").where(), json.value_offset())
        .expected(fmt::format("quantiser {}; 8 and 4, 6 and 3, or 4 and 2 bits", codec::kAmat))
        .found(fmt::format("{}; {} and {} bits", in_quotes(quantiser), high, low))
        .fix("use a newer version of Sluice");
  }
  return *bits;
}

void read_members(JsonReader& json, Manifest& manifest) {
  static constexpr std::array<std::string_view, 14> kNames = {
      "format", "version", "requires",          "architecture", "family",
      "codec",  "sources", "empty_directories", "tensors",      "data_files",
      "dense",  "experts", "checksum",          "slices"};
  constexpr std::size_t kAlways = 13;  // the others appear only where the family has them
  JsonMembers members(kNames);
  std::string family, key;
  Requirements required;
  json.begin_object();
  while (json.next_key(key)) {
    switch (members.take(json, key)) {
      case 0:
        json.read_string(key);
        break;  // parse_manifest has checked it, and the next
      case 1:
        json.read_number();
        break;
      case 2:
        required = read_requirements(json);
        break;
      case 3:
        json.read_string(manifest.architecture);
        break;
      case 4:
        json.read_string(family);
        break;
      case 5:
        manifest.codec = read_codec(json);
        break;
      case 6:
        for (json.begin_array(); json.next_item();) manifest.sources.push_back(read_source(json));
        break;
      case 7:
        for (json.begin_array(); json.next_item();) manifest.empty_directories.push_back(json.read_string());
        break;
      case 8:
        for (json.begin_array(); json.next_item();) read_tensor(json, manifest);
        break;
      case 9:
        for (json.begin_array(); json.next_item();) {
          JsonTuple tuple(json);
          DataFile file;
          tuple.next().read_string(file.name);
          file.size = tuple.next().read_number();
          tuple.end();
          manifest.data_files.push_back(std::move(file));
        }
        break;
      case 10:
        for (json.begin_array(); json.next_item();) read_piece_json(json, manifest, 0);
        break;
      case 11:
        if (!members.has(10)) throw json.error("\"experts\" stands before \"dense\"");
        manifest.dense_pieces = static_cast<std::uint32_t>(manifest.pieces.size());
        for (json.begin_array(); json.next_item();) read_expert_json(json, manifest);
        break;
      case 12:
        json.read_string(key);
        break;  // already checked
      case 13:
        manifest.slices = read_slices(json);
        break;
    }
  }
  members.need(json, kAlways);
  json.end();
  const bool sliced = family == family_name(Family::kSliced);
  if (family != "raw" && family != "split" && !sliced) {
    throw Error(ErrorKind::kUnsupported, "the store is of a family that this version of Sluice does not know")
        .in(json.error("").where())
        .expected("\"raw\", \"split\" or \"sliced\"")
        .found(fmt::format("\"{}\"", family))
        .fix("use a newer version of Sluice");
  }
  if (sliced != required.sliced || sliced != manifest.slices.has_value()) {
    throw json.error("family, slices and required features do not fit")
        .expected("\"slices\", and \"sliced\" required, in that family and no other")
        .found(family);
  }
  if (required.formats != manifest.has_formats()) {
    throw json.error("required features and pieces do not fit")
        .expected("\"formats\" required by pieces in a format, and by no others");
  }
  if (required.gguf != (manifest.first_gguf() != nullptr)) {
    throw json.error("required features and source files do not fit")
        .expected("\"gguf\" required by GGUF files, and by nothing else");
  }
  if (required.native != (manifest.codec.name == codec::kNativeCodec)) {
    throw json.error("required features and codec do not fit")
        .expected("\"native\" required by that codec and no other")
        .found(manifest.codec.name);
  }
  if (!sliced && (family == "raw") != (manifest.codec.name == "none")) {
    throw json.error("family and codec do not fit")
        .expected("raw with none, split with a codec")
        .found(family + " with " + manifest.codec.name);
  }
}

}  // namespace

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMost = 32;
  std::string start(text.substr(0, kMost));
  for (char& c : start)
    if (c < ' ' || c > '~') c = '?';
  return "\"" + start + (text.size() > kMost ? "…\"" : "\"");
}

std::uint64_t stated_checksum(std::string_view text, const std::string& name) {
  std::uint64_t sum = 0;
  const bool has_tail = text.size() >= kChecksumTailBytes &&
                        text.substr(text.size() - kChecksumTailBytes).starts_with(kChecksumStart) &&
                        text.ends_with(kChecksumEnd) &&
                        parse_hex64(text.substr(text.size() - kChecksumEnd.size() - 16, 16), sum);
  if (!has_tail) {
    throw Error(ErrorKind::kCorrupt, "the file does not end with its checksum")
        .in(name, text.size() - std::min(text.size(), kChecksumTailBytes))
        .expected("\"checksum\":\"…\"}")
        .found(text.empty() ? "an empty file"
                            : in_quotes(text.substr(text.size() - std::min(text.size(), kChecksumTailBytes))))
        .fix(kRestore);
  }
  return sum;
}

void check_checksum(std::string_view text, const std::string& name) {
  const std::uint64_t stated = stated_checksum(text, name);
  const std::uint64_t real = xxh3(std::as_bytes(std::span(text.data(), text.size() - kChecksumTailBytes)));
  if (stated != real) {
    throw Error(ErrorKind::kCorrupt, "the checksum of the file is wrong")
        .in(name, 0)
        .expected(hex64(stated))
        .found(hex64(real))
        .fix(kRestore);
  }
}

Manifest parse_manifest(std::string_view text, const std::string& name,
                        std::span<const codec::MatrixFormat* const> more_formats) {
  if (!text.starts_with(kManifestStart)) {
    throw Error(ErrorKind::kInvalid, "not the manifest of a packed store")
        .in(name, 0)
        .expected(std::string(kManifestStart))
        .found(text.empty() ? "an empty file" : in_quotes(text))
        .fix(kRestore);
  }
  // Reads the version first: in another version every other rule may differ.
  std::string_view version = text.substr(kManifestStart.size(), 21);
  version = version.substr(0, version.find_first_not_of("0123456789"));
  if (version != fmt::format("{}", kFormatVersion)) {
    throw Error(ErrorKind::kUnsupported, "the store has another format version")
        .in(name, kManifestStart.size())
        .expected(fmt::format("{}", kFormatVersion))
        .found(std::string(version))
        .fix("use the version of Sluice that packed it, or pack the model again");
  }
  check_checksum(text, name);
  Manifest manifest;
  manifest.more_formats = more_formats;
  JsonReader json(text, name);
  read_members(json, manifest);
  check_manifest(manifest, name);
  return manifest;
}

}  // namespace sluice::store
