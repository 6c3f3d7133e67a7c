#include "store/pack/pack_resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "store/format.h"
#include "store/json_reader.h"
#include "store/piece_encoding.h"

namespace sluice::store {
namespace {

// Reads the records behind the first one, in order.
class Records {
 public:
  // `copy_again`: files other than weights that have changed since.
  Records(const PackJob& job, const PartialDirectory& partial, std::vector<std::string> copy_again,
          Manifest& manifest, PackStart& start)
      : job_(job),
        partial_(partial),
        copy_again_(std::move(copy_again)),
        manifest_(manifest),
        start_(start) {}

  void take(const std::string& record) {
    JsonReader json(record, partial_.file(kJournalName));
    std::string key;
    json.begin_object();
    json.next_key(key);
    if (key == "file" || key == "hash") {
      take_source(json);
    } else if (key == "dense" || key == "expert") {
      take_unit(json, key);
    } else {
      throw wrong();
    }
  }

 private:
  Error wrong() const {
    return Error(ErrorKind::kCorrupt, "the journal of the unfinished store does not fit its plan")
        .in(partial_.file(kJournalName))
        .expected("records of what the pack was to write, in its order")
        .found("another record")
        .fix("remove " + partial_.path() + " to start over");
  }

  void take_source(JsonReader& json) {
    const std::uint64_t index = json.read_number();
    std::string key;
    json.next_key(key);
    if (index >= manifest_.sources.size()) throw wrong();
    const std::string sha256 = json.read_string();
    StoredSource& source = manifest_.sources[index];
    if (std::ranges::count(copy_again_, source.path) > 0) return;
    source.sha256 = sha256;
    if (!source.weights) start_.done_bytes += source.size;
  }

  void take_unit(JsonReader& json, const std::string& key) {
    if (start_.next_unit >= job_.units.size()) throw wrong();
    const PackUnit& unit = job_.units[start_.next_unit++];
    const std::size_t first_piece = manifest_.pieces.size();
    if (key == "dense") {
      read_piece_json(json, manifest_, 0);
      start_.dense.push_back(static_cast<std::uint32_t>(first_piece));
    } else {
      read_expert_json(json, manifest_);
    }
    const bool same = unit.is_expert == (key == "expert") &&
                      manifest_.pieces.size() - first_piece == unit.pieces.size() &&
                      std::equal(unit.pieces.begin(), unit.pieces.end(),
                                 manifest_.pieces.begin() + static_cast<std::ptrdiff_t>(first_piece),
                                 [&](const UnitPiece& a, const PieceEntry& b) { return is_piece(a, b); });
    if (!same) throw wrong();
    start_.done_bytes += job_.unit_bytes(unit);
  }

  bool is_piece(const UnitPiece& wanted, const PieceEntry& found) const {
    if (wanted != TensorRange{found.tensor, found.first, found.count} || wanted.format != found.format)
      return false;
    if (wanted.format == nullptr) return true;
    const std::span<const StoredChunk> planes = runs_of(manifest_, found);
    return std::ranges::equal(wanted.ranges(), planes, [](const TensorRange& a, const StoredChunk& b) {
      return a == TensorRange{b.tensor, b.first, b.count};
    });
  }

  const PackJob& job_;
  const PartialDirectory& partial_;
  const std::vector<std::string> copy_again_;
  Manifest& manifest_;
  PackStart& start_;
};

// A run that was killed leaves a journal, if it leaves any file; or, just before the rename, the manifest
// instead.
void clear(PartialDirectory& partial) {
  if (!partial.has(kJournalName) && !partial.has(kManifestName) && !partial.empty()) {
    throw Error(ErrorKind::kInvalid, "this directory is not an unfinished store")
        .in(partial.path())
        .expected(fmt::format("{} or {} beside its files, or no file", kJournalName, kManifestName))
        .found("files without them")
        .fix("remove the directory or choose another name");
  }
  partial.clear(kJournalName);
}

}  // namespace

PackStart start_or_resume(const PackJob& job, PartialDirectory& partial, Manifest& manifest) {
  const std::string path = partial.file(kJournalName);
  const JournalContent content = read_journal(path);
  const bool fresh = content.records.empty();
  PackStart start;
  if (fresh) {
    clear(partial);
  } else {
    Records records(job, partial, check_identity(content.records.front(), job.identity, partial.path()),
                    manifest, start);
    for (std::size_t i = 1; i < content.records.size(); ++i) records.take(content.records[i]);
  }
  start.journal = std::make_unique<JournalWriter>(path, content.valid_bytes);
  if (fresh) {
    start.journal->add(identity_record(job.identity));
    start.journal->commit();
    sync_directory(partial.path());
  }
  return start;
}

}  // namespace sluice::store
