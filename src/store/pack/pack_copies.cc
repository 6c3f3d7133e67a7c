#include "store/pack/pack_copies.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "base/files/file.h"
#include "base/hash.h"
#include "store/format.h"

namespace sluice::store {
namespace {

// An earlier run may have left the file, complete or not.
OutputFile create_afresh(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw io_error("unlink", path, errno);
  return OutputFile::create(path);
}

void make_directories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw io_error("mkdir", path, error.value());
}

// Copies the file durably, with the directories above it. Returns its SHA-256.
std::string copy_file(const InputFile& in, const std::string& to, const std::string& partial, Bytes size,
                      std::span<std::byte> buffer, const std::function<void(Bytes)>& on_bytes) {
  make_directories(parent_directory(to));
  OutputFile out = create_afresh(to);
  Sha256Stream sum;
  for (Bytes at = 0; at < size;) {
    const std::span<std::byte> bytes =
        buffer.first(static_cast<std::size_t>(std::min<Bytes>(buffer.size(), size - at)));
    in.read_at(at, bytes);
    sum.update(bytes);
    out.write(bytes);
    at += bytes.size();
    on_bytes(bytes.size());
  }
  in.drop_cache(0, size);
  out.close();
  for (std::string at = parent_directory(to); at.size() >= partial.size(); at = parent_directory(at))
    sync_directory(at);
  return sum.hex_digest();
}

}  // namespace

void copy_headers(const PackJob& job, const PartialDirectory& partial, Manifest& manifest) {
  OutputFile out = create_afresh(partial.file(kHeadersName));
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kMiB);
  for (std::size_t i = 0; i < job.source.weights.files.size(); ++i) {
    const InputFile in = InputFile::open(job.source_path(job.source.weights.files[i].relative));
    StoredSource& source = manifest.sources[job.source_of_file[i]];
    source.header = {out.size(), 0};
    Xxh3Stream sum;
    for (const Region& rest : rest_of(manifest, job.source_of_file[i])) {
      for (Bytes at = rest.offset; at < rest.end();) {
        const std::span<std::byte> bytes(buffer.get(),
                                         static_cast<std::size_t>(std::min<Bytes>(kMiB, rest.end() - at)));
        in.read_at(at, bytes);
        sum.update(bytes);
        out.write(bytes);
        at += bytes.size();
      }
      source.header.length += rest.length;
    }
    source.header_xxh3 = sum.digest();
  }
  out.close();
}

void copy_files(const PackJob& job, const PartialDirectory& partial, Manifest& manifest,
                JournalWriter& journal, const std::function<void(Bytes)>& on_bytes) {
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kMiB);
  const std::string files = partial.file(kFilesDirectory);
  make_directories(files);
  for (std::size_t i = 0; i < manifest.sources.size(); ++i) {
    StoredSource& source = manifest.sources[i];
    if (source.weights || !source.sha256.empty()) continue;
    source.sha256 = copy_file(InputFile::open(job.source_path(source.path)), files + "/" + source.path,
                              partial.path(), source.size, {buffer.get(), kMiB}, on_bytes);
    journal.add(fmt::format("{{\"file\":{},\"sha256\":\"{}\"}}", i, source.sha256));
    journal.commit();
  }
}

}  // namespace sluice::store
