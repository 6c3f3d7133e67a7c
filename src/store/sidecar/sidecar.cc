#include "store/sidecar/sidecar.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/error.h"
#include "base/files/file.h"
#include "base/hash.h"
#include "store/format.h"
#include "store/manifest.h"
#include "store/source/store_checkpoint.h"

namespace sluice::store {
namespace {

constexpr std::string_view kRemove = "remove it; the command that made it makes it again";

bool is_word(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string_view::npos;
}

enum class Form { kJson, kTables };
std::string path_of(const std::string& store, std::string_view name, Form form) {
  SLUICE_CHECK(is_word(name), std::string(name));
  return fmt::format("{}/{}/{}.{}", store, kSidecarDirectory, name, form == Form::kJson ? "json" : "bin");
}

// What cannot be seen (a directory that may not be entered) is there: reading it says why it cannot be read.
bool may_be_there(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

std::string read_file(const std::string& path) {
  InputFile::open(path);  // refuses a pipe in its place, which would be waited for
  return read_text_file(path, kMaxSidecarBytes);
}

// Reads only the end of the manifest: the rest may be megabytes, and is checked where it is used.
std::uint64_t manifest_checksum(const std::string& store) {
  check_has_manifest(store);
  const InputFile file = InputFile::open(store + "/" + std::string(kManifestName));
  std::string tail(std::min<Bytes>(file.size(), kChecksumTailBytes), '\0');
  file.read_at(file.size() - tail.size(), std::as_writable_bytes(std::span(tail)));
  return stated_checksum(tail, file.path());
}

void write_file(const std::string& store, const std::string& path, std::string_view content) {
  std::error_code error;
  std::filesystem::create_directory(store + "/" + std::string(kSidecarDirectory), error);
  if (error) throw io_error("mkdir", store + "/" + std::string(kSidecarDirectory), error.value());
  write_file_atomically(path, content);
}

// The kind of a sidecar and the checksum of its manifest. Checks its form and its own checksum.
struct Head {
  std::uint64_t manifest = 0;
  std::string kind;
};
Head read_head(std::string_view text, const std::string& name) {
  const auto malformed = [&](std::string_view expected) {
    return Error(ErrorKind::kInvalid, "not a sidecar of a packed store")
        .in(name, 0)
        .expected(expected)
        .found(text.empty() ? "an empty file" : in_quotes(text))
        .fix(kRemove);
  };
  try {
    check_checksum(text, name);
  } catch (Error& error) {
    throw error.fix(kRemove);
  }
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
  const std::string path = path_of(store, name, Form::kJson);
  if (!may_be_there(path)) return std::nullopt;
  const std::string text = read_file(path);
  const Head head = read_head(text, path);
  if (head.kind != kind || head.manifest != manifest_checksum(store)) return std::nullopt;
  return parse_json(text, path, {.max_bytes = kMaxSidecarBytes});
}

void check_takes_sidecars(const std::string& store) {
  const std::string sidecars = fmt::format("{}/{}", store, kSidecarDirectory);
  const std::string& directory = may_be_there(sidecars) ? sidecars : store;
  if (::access(directory.c_str(), W_OK) == 0) return;
  throw io_error("write", directory, errno).fix("copy the store to where it can be written");
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
  write_file(store, path_of(store, name, Form::kJson), text);
}

std::optional<TableSidecar> read_tables(const std::string& store, std::string_view name,
                                        const TableKind& kind) {
  const std::string path = path_of(store, name, Form::kTables);
  if (!may_be_there(path)) return std::nullopt;
  TableSidecar sidecar = TableSidecar::of_file(InputFile::open(path));
  sidecar.check_kind(kind);
  if (sidecar.manifest_checksum() != manifest_checksum(store)) return std::nullopt;
  return sidecar;
}

void write_tables(const std::string& store, std::string_view name, const TableKind& kind,
                  std::span<const NamedTable> tables) {
  SLUICE_CHECK(is_word(kind.kind), std::string(kind.kind));
  write_file(store, path_of(store, name, Form::kTables),
             write_tables(kind, manifest_checksum(store), tables));
}

namespace {

void check_owner(std::uint64_t found, std::uint64_t manifest_checksum, const std::string& name) {
  if (found == manifest_checksum) return;
  throw Error(ErrorKind::kInvalid, "the sidecar belongs to another store")
      .in(name, kSidecarStart.size())
      .expected(hex64(manifest_checksum))
      .found(hex64(found))
      .fix(kRemove);
}

}  // namespace

bool is_sidecar(std::string_view relative) {
  const std::string start = std::string(kSidecarDirectory) + "/";
  return relative.starts_with(start) && (relative.ends_with(".json") || relative.ends_with(".bin")) &&
         relative.find('/', start.size()) == std::string_view::npos;
}

void check_sidecar(const std::string& path, const std::string& name, std::uint64_t manifest_checksum) {
  if (name.ends_with(".json")) {
    check_owner(read_head(read_file(path), name).manifest, manifest_checksum, name);
    return;
  }
  const TableSidecar sidecar = TableSidecar::of_file(InputFile::open(path));
  check_owner(sidecar.manifest_checksum(), manifest_checksum, name);
  sidecar.check_all();
}

}  // namespace sluice::store
