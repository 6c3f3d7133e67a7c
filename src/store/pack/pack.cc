#include "store/pack/pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "base/compared_bytes.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/machine/thread_pool.h"
#include "base/setting.h"
#include "base/stop_request.h"
#include "codec/exponents/shards.h"
#include "store/format.h"
#include "store/pack/journal.h"
#include "store/pack/ordered_pipeline.h"
#include "store/pack/pack_coder.h"
#include "store/pack/pack_copies.h"
#include "store/pack/pack_job.h"
#include "store/pack/pack_needs.h"
#include "store/pack/pack_resume.h"
#include "store/pack/partial_directory.h"
#include "store/pack/source_hasher.h"
#include "store/pack/unit_writer.h"
#include "store/source/store_checkpoint.h"

namespace sluice::store {
namespace {

constexpr Bytes kMaxHashLag = kGiB;  // pages that may wait in the page cache for the hasher
constexpr Bytes kMaxPendingRecords = kMiB;

using Clock = std::chrono::steady_clock;

// Whether a pack may have left this name at the top of its directory.
bool is_name_of_store(std::string_view name) {
  return name == kJournalName || name.starts_with(kManifestName) || name == kHeadersName ||
         name == kDenseName || name == kFilesDirectory || name == kSidecarDirectory ||
         (name.starts_with("experts-") && name.ends_with(".bin"));
}

class Packer {
 public:
  Packer(const std::string& source, const std::string& target, const PackPlan& plan,
         const PackOptions& options)
      : options_(options),
        target_(without_slashes(target)),
        job_(source, plan, options),
        partial_(target_, is_name_of_store),
        manifest_(job_.manifest) {}

  PackResult run() {
    resume();
    check_interrupted();
    check_room();
    report();
    copy_headers(job_, partial_, manifest_);
    if (next_unit_ == 0) done_bytes_ += manifest_.headers_bytes();
    copy_files(job_, partial_, manifest_, *journal_, [this](Bytes bytes) {
      done_bytes_ += bytes;
      report();
      check_interrupted();
    });
    pack_weights();
    finish_hashes();
    check_source_unchanged(job_, partial_.path());
    check_interrupted();
    return publish();
  }

 private:
  void resume() {
    PackStart start = start_or_resume(job_, partial_, manifest_);
    journal_ = std::move(start.journal);
    next_unit_ = start.next_unit;
    done_bytes_ = resumed_bytes_ = start.done_bytes;
    reserve_manifest();
    writer_ = std::make_unique<UnitWriter>(partial_.path(), manifest_, std::move(start.dense),
                                           options_.expert_file_bytes);
  }

  // Tables that grow by and by are in memory twice while they do. A piece has one run or more.
  void reserve_manifest() {
    std::size_t pieces = 0, experts = 0;
    for (const PackUnit& unit : job_.units) {
      pieces += unit.pieces.size();
      experts += unit.is_expert ? 1 : 0;
    }
    manifest_.pieces.reserve(pieces);
    manifest_.chunks.reserve(pieces);
    manifest_.experts.reserve(experts);
  }

  // Checked before the pack begins, so that a pack without enough memory or space leaves nothing behind.
  void check_room() {
    try {
      if (options_.check_memory) options_.check_memory(least_memory(job_));
      check_space();
    } catch (const Error&) {
      if (next_unit_ == 0) {
        writer_.reset();
        journal_.reset();
        partial_.discard();
      }
      throw;
    }
  }
  void check_space() const {
    const Bytes need = least_space(job_, manifest_, next_unit_), free = free_space(partial_.path());
    if (need <= free) return;
    const std::string path = next_unit_ == 0 ? target_ : partial_.path();
    const ComparedBytes sizes = compared_bytes(need, free);
    throw Error(ErrorKind::kIo, "not enough free space for the store")
        .in(path)
        .expected("about " + sizes.expected)
        .found(sizes.found)
        .fix("free some space or choose another place");
  }

  // ---- Progress

  void report() const {
    if (options_.on_progress)
      options_.on_progress({std::min(done_bytes_, job_.source_bytes), job_.source_bytes});
  }

  void check_interrupted() const {
    if (options_.interrupted && options_.interrupted()) throw_interrupted();
  }
  // Keeps every whole unit, then stops if the user interrupts.
  void keep_if_interrupted() {
    if (!options_.interrupted || !options_.interrupted()) return;
    commit();
    throw_interrupted();
  }
  [[noreturn]] void throw_interrupted() const {
    throw interrupted_error("what is packed so far is kept")
        .in(partial_.path())
        .fix("run the same command again to go on");
  }

  void commit() {
    writer_->sync();
    journal_->commit();
    last_commit_ = Clock::now();
  }
  bool is_time_to_commit() const { return Clock::now() - last_commit_ >= options_.journal_time; }

  // ---- Stages

  void pack_weights() {
    std::vector<SourceHasher::Input> inputs;
    for (std::size_t i = 0; i < job_.source.weights.files.size(); ++i) {
      const WeightFile& file = job_.source.weights.files[i];
      const std::string path = job_.source_path(file.relative);
      source_files_.push_back(InputFile::open(path));
      inputs.push_back({path, file.size, !source_of(i).sha256.empty()});
    }
    hasher_ = std::make_unique<SourceHasher>(std::move(inputs));

    PackSlices slices(job_.source.weights, job_.units, job_.coding, next_unit_);
    Pipeline<CodedSlice> pipeline;
    pipeline.threads = coding_threads(job_);
    pipeline.memory_limit = options_.memory;
    pipeline.next = [&slices](CodedSlice& slice) { return slices.next(slice); };
    pipeline.memory = [](const CodedSlice& slice) { return slice.memory(); };
    pipeline.load = [this](CodedSlice& slice, const StopRequest& failed) { load(slice, failed); };
    pipeline.work = [this](CodedSlice& slice, const StopRequest& failed) { code_slice(job_, slice, failed); };
    pipeline.finish = [this](CodedSlice& slice) { finish(slice); };
    pipeline.poll = [this] {
      report();
      keep_if_interrupted();
    };
    last_commit_ = Clock::now();
    pipeline.run();
    commit();
  }

  // Runs on the reader thread.
  void load(CodedSlice& slice, const StopRequest& failed) {
    const Bytes begin = job_.file_starts[slice.file] + slice.offset, end = begin + slice.length;
    const InputFile& file = source_files_[slice.file];
    load_slice(job_, slice, file, failed);
    hasher_->allow(end);
    // The last user of the pages drops them; the reader also drops them when the hasher is far behind.
    if (hasher_->is_past(end) || end > hasher_->position() + kMaxHashLag)
      file.drop_cache(slice.offset, slice.length);
  }

  // Runs on the caller's thread, in order.
  void finish(const CodedSlice& slice) {
    if (!unit_open_) begin_unit(job_, job_.units[slice.unit], *writer_);
    unit_open_ = true;
    put_slice(job_, slice, *writer_);
    done_bytes_ += slice.length;
    if (!slice.last) return;
    journal_->add(writer_->end());
    unit_open_ = false;
    take_hashes();
    if (writer_->bytes_since_sync() >= options_.journal_bytes ||
        journal_->pending_bytes() >= kMaxPendingRecords || is_time_to_commit())
      commit();
  }

  StoredSource& source_of(std::size_t file) { return manifest_.sources[job_.source_of_file[file]]; }

  void take_hashes() {
    for (const auto& [file, sha256] : hasher_->take_finished()) {
      source_of(file).sha256 = sha256;
      journal_->add(fmt::format("{{\"hash\":{},\"sha256\":\"{}\"}}", job_.source_of_file[file], sha256));
    }
  }

  void finish_hashes() {
    hasher_->allow_all();
    while (!hasher_->done()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      take_hashes();
      if (is_time_to_commit()) commit();
      keep_if_interrupted();
    }
    take_hashes();
    journal_->commit();
    hasher_.reset();
    source_files_.clear();
  }

  // Another program may have cut or removed written files.
  void check_written(const Manifest& manifest) const {
    try {
      check_file_sizes(partial_.path(), manifest);
    } catch (Error& error) {
      throw error.fix(
          fmt::format("something else has changed it: remove {} and pack again", partial_.path()));
    }
  }

  // Writes the manifest, and removes what does not belong to the store: of sidecars those of a run that was
  // killed. Neither the manifest nor its text, which may both be large, is in memory afterwards.
  PackResult write_ordered() {
    const Manifest ordered = writer_->take_in_order();
    writer_.reset();
    check_manifest(ordered, partial_.file(kManifestName));
    const std::string text = write_manifest(ordered);
    check_interrupted();

    std::vector<std::string> names = {std::string(kManifestName), std::string(kJournalName),
                                      std::string(kHeadersName), std::string(kFilesDirectory)};
    PackResult result;
    result.family = ordered.family();
    result.codec = ordered.codec.name;
    result.stored_bytes = text.size() + ordered.headers_bytes();
    for (const DataFile& file : ordered.data_files) {
      names.push_back(file.name);
      result.stored_bytes += file.size;
    }
    for (const StoredSource& source : ordered.sources) {
      if (!source.weights) result.stored_bytes += source.size;
    }
    result.source_bytes = job_.source_bytes;
    result.resumed_bytes = resumed_bytes_;
    result.experts = ordered.experts.size();
    result.tensors = ordered.tensors.size();

    check_written(ordered);
    write_file_atomically(partial_.file(kManifestName), text);
    partial_.remove_others(names);
    return result;
  }

  PackResult publish() {
    PackResult result = write_ordered();
    check_interrupted();
    if (options_.add_sidecars) options_.add_sidecars(partial_.path());
    check_interrupted();
    journal_.reset();
    // From the removal of the journal to the rename, the store is whole but has no journal; a run that finds
    // it in this state begins anew.
    partial_.publish(kJournalName);
    done_bytes_ = job_.source_bytes;
    report();
    return result;
  }

  const PackOptions& options_;
  const std::string target_;
  const PackJob job_;
  PartialDirectory partial_;

  Manifest manifest_;  // pieces and experts in the order of the job's units
  Bytes done_bytes_ = 0, resumed_bytes_ = 0;
  std::size_t next_unit_ = 0;  // the first unit that earlier runs have not finished
  std::unique_ptr<JournalWriter> journal_;
  std::unique_ptr<UnitWriter> writer_;
  std::vector<InputFile> source_files_;
  std::unique_ptr<SourceHasher> hasher_;
  bool unit_open_ = false;
  Clock::time_point last_commit_;
};

}  // namespace

PackResult pack(const std::string& source, const std::string& target, const PackPlan& plan,
                const PackOptions& options) {
  codec::check_chunk_count(options.chunks, Setting::kChunks);
  if (options.dense == DenseRounding::kInt8 && !options.slices) {
    throw Error(ErrorKind::kUsage, "dense weights of 8 bits belong to a store with sliced experts")
        .in(Setting::kDense)
        .expected(Setting::kSlices + " beside int8, or exact")
        .found("int8 alone")
        .fix("give " + Setting::kSlices + ", too, or leave " + Setting::kDense + " out");
  }
  check_outside(target, source);
  check_not_packed(source);
  return Packer(source, target, plan, options).run();
}

}  // namespace sluice::store
