#include "store/pack/pack_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "base/setting.h"
#include "codec/exponents/plane_decoder.h"
#include "store/tensor_list.h"

namespace sluice::store {
namespace {

// Null for codec native.
std::unique_ptr<const codec::ExponentCodec> make_codec(const PackOptions& options) {
  if (options.codec != codec::kNativeCodec) return codec::make_exponent_codec(options.codec, options.level);
  if (options.level)
    throw Error(ErrorKind::kUsage, "codec native has no levels")
        .in(Setting::kLevel)
        .expected("a codec that has levels, or none given")
        .found(std::to_string(*options.level))
        .fix("leave " + Setting::kLevel + " out");
  return nullptr;
}

std::vector<std::uint32_t> exact_tensors(const Weights& weights, const PackPlan& plan,
                                         const std::string& path) {
  std::vector<std::uint32_t> indices;
  for (const std::string& name : plan.exact) {
    const TensorInfo& tensor = checked_tensor(weights.tensors, {name, 0, 0}, path);
    indices.push_back(static_cast<std::uint32_t>(&tensor - weights.tensors.data()));
  }
  std::sort(indices.begin(), indices.end());
  return indices;
}

Planes planes_of(const codec::ExponentCodec* codec) {
  return codec == nullptr ? Planes::kTiled : codec->name() == "none" ? Planes::kNone : Planes::kFlat;
}

CodecChoice codec_choice(const PackJob& job) {
  CodecChoice choice;
  choice.name = job.options.codec;
  if (job.coding.planes == Planes::kNone) return choice;
  choice.level = job.codec == nullptr ? 0 : static_cast<std::uint64_t>(job.codec->level());
  choice.chunks = job.options.chunks;
  return choice;
}

// All options that change a byte of the store, as text.
std::string options_text(const PackOptions& options, const CodecChoice& codec) {
  std::string text = fmt::format("codec {}, level {}, chunks {}, expert files of {} bytes", codec.name,
                                 codec.level, codec.chunks, options.expert_file_bytes);
  if (options.keep_columns) text += ", columns as they are";
  if (options.least_split_dense != kMinSplitDenseBytes)
    text += fmt::format(", dense pieces of {} bytes split", options.least_split_dense);
  if (options.slices)
    text += fmt::format(", slices {} {}", codec::kAmat, codec::slice_bits_text(*options.slices));
  if (options.dense == DenseRounding::kInt8) text += ", dense int8";
  return text;
}

// Fills in the sources of the manifest, and where the tensors lie in them.
void list_sources(PackJob& job) {
  Manifest& manifest = job.manifest;
  for (const SourceFile& file : job.directory.files) {
    StoredSource stored;
    stored.path = file.relative;
    stored.size = file.size;
    manifest.sources.push_back(stored);
    job.source_bytes += file.size;
  }
  for (const WeightFile& file : job.weights.files) {
    const SourceFile* found = job.directory.find(file.relative);
    if (found == nullptr || found->size != file.size) {
      throw Error(ErrorKind::kInvalid, "the source changes while it is packed")
          .in(job.source_path(file.relative))
          .expected(fmt::format("{} bytes, as its header was read", file.size))
          .found(found == nullptr ? "no file any more" : fmt::format("{} bytes", found->size))
          .fix("pack it again once nothing writes to it");
    }
    job.source_of_file.push_back(static_cast<std::size_t>(found - job.directory.files.data()));
    manifest.sources[job.source_of_file.back()].weights = true;
  }
  for (const TensorPlace& place : job.weights.places)
    manifest.places.push_back({static_cast<std::uint32_t>(job.source_of_file[place.file]), place.offset});
}

}  // namespace

PackJob::PackJob(const std::string& source, const PackPlan& plan, const PackOptions& pack_options)
    : options(pack_options),
      codec(make_codec(options)),
      directory(scan_directory(source, options.exclude, Depth::kTree)),
      weights(read_weights(directory.path, select_weights(directory, OtherWeights::kRefuse))),
      coding{planes_of(codec.get()),
             options.chunks,
             options.least_split_dense,
             options.keep_columns,
             options.slices,
             options.dense,
             exact_tensors(weights, plan, directory.path)},
      units(make_units(weights, plan, directory.path)),
      file_starts(file_positions(weights)) {
  manifest.architecture = plan.architecture;
  manifest.codec = codec_choice(*this);
  manifest.slices = options.slices;
  manifest.tensors = weights.tensors;
  manifest.empty_directories = directory.empty_directories;
  list_sources(*this);
  identity.source = &directory;
  identity.options = options_text(options, manifest.codec);
  identity.plan = hex64(fingerprint(weights, units, plan.architecture));
  for (const StoredSource& stored : manifest.sources) identity.weights.push_back(stored.weights);
}

PieceEntry PackJob::coding_of(const PackUnit& unit, const UnitPiece& piece) const {
  return store::coding_of(weights, unit, piece, coding);
}

Bytes PackJob::unit_bytes(const PackUnit& unit) const {
  Bytes bytes = 0;
  for (const UnitPiece& piece : unit.pieces) bytes += weights.tensors[piece.tensor].bytes_of(piece.count);
  return bytes;
}

void check_source_unchanged(const PackJob& job, const std::string& partial) {
  const SourceDirectory now = scan_directory(job.directory.path, job.options.exclude, Depth::kTree);
  for (const SourceFile& file : job.directory.files) {
    const SourceFile* same = now.find(file.relative);
    if (same == nullptr || !same_version(*same, file)) {
      throw Error(ErrorKind::kInvalid, "the file changed while it was packed")
          .in(job.source_path(file.relative))
          .expected("the file that was there when the pack began")
          .found(same == nullptr ? "no file any more" : "another size, time of change or file of this name")
          .fix("remove " + partial + " and pack again");
    }
  }
}

}  // namespace sluice::store
