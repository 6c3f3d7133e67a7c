#include "store/sidecar.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "store/format.h"
#include "store/manifest.h"
#include "store/store_checkpoint.h"

namespace sluice::store {
namespace {

constexpr Bytes kMaxSidecarBytes = 256 * kMiB;

bool is_word(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string_view::npos;
}

std::string path_of(const std::string& store, std::string_view name) {
  SLUICE_CHECK(is_word(name), std::string(name));
  return fmt::format("{}/{}/{}.json", store, kSidecarDirectory, name);
}

std::uint64_t manifest_checksum(const std::string& store) {
  return stated_checksum(read_manifest_text(store), store + "/" + std::string(kManifestName));
}

// The checksum of the manifest it belongs to, and its kind. Checks form and own checksum.
struct Head {
  std::uint64_t manifest = 0;
  std::string kind;
};
Head read_head(std::string_view text, const std::string& name) {
  const auto malformed = [&](std::string_view expected) {
    return Error(ErrorKind::kInvalid, "not a sidecar of a packed store")
        .in(name, 0)
        .expected(expected)
        .found(text.empty() ? "an empty file" : quoted(text))
        .fix("remove it");
  };
  check_checksum(text, name);
  if (!text.starts_with(kSidecarStart)) throw malformed(kSidecarStart);
  std::string_view rest = text.substr(kSidecarStart.size());
  constexpr std::string_view kKind = "\",\"kind\":\"";
  Head head;
  if (!parse_hex64(rest.substr(0, 16), head.manifest)) throw malformed("the checksum of a manifest");
  rest.remove_prefix(16);
  if (!rest.starts_with(kKind)) throw malformed(kKind);
  rest.remove_prefix(kKind.size());
  head.kind = std::string(rest.substr(0, rest.find('"')));
  if (!is_word(head.kind)) throw malformed("a kind");
  JsonReader json(text, name);
  json.skip_value();
  json.end();
  return head;
}

}  // namespace

std::optional<Json> read_sidecar(const std::string& store, std::string_view name, std::string_view kind) {
  const std::string path = path_of(store, name);
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  const std::string text = read_text_file(path, kMaxSidecarBytes);
  const Head head = read_head(text, path);
  if (head.kind != kind || head.manifest != manifest_checksum(store)) return std::nullopt;
  return parse_json(text, path, {.max_bytes = kMaxSidecarBytes});
}

void write_sidecar(const std::string& store, std::string_view name, std::string_view kind, const Json& body) {
  SLUICE_CHECK(is_word(kind) && body.is_object(), std::string(kind));
  std::string text =
      fmt::format("{}{}\",\"kind\":\"{}\"", kSidecarStart, hex64(manifest_checksum(store)), kind);
  for (const auto& [key, value] : body.items()) {
    text += ",\n";
    append_json_string(text, key);
    text += ':';
    text += value.dump();
  }
  append_checksum(text);
  std::error_code error;
  std::filesystem::create_directory(store + "/" + std::string(kSidecarDirectory), error);
  if (error) throw io_error("mkdir", store + "/" + std::string(kSidecarDirectory), error.value());
  write_file_atomically(path_of(store, name), text);
}

void check_sidecar(std::string_view text, const std::string& name, std::uint64_t manifest_checksum) {
  const Head head = read_head(text, name);
  if (head.manifest != manifest_checksum) {
    throw Error(ErrorKind::kInvalid, "the sidecar belongs to another store")
        .in(name, kSidecarStart.size())
        .expected(hex64(manifest_checksum))
        .found(hex64(head.manifest))
        .fix("remove it");
  }
}

}  // namespace sluice::store
