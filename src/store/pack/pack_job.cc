#include "store/pack/pack_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "base/setting.h"
#include "codec/exponents/plane_decoder.h"
#include "store/piece_encoding.h"
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

std::vector<std::uint32_t> exact_tensors(const SourceWeights& source, const PackPlan& plan) {
  const ReadTensors& read = source.tensors;
  std::vector<std::uint32_t> indices;
  for (const std::string& name : plan.exact) {
    const TensorInfo& tensor = checked_tensor(read.tensors, {name, 0, 0}, source.directory.path);
    indices.push_back(read.planes[static_cast<std::size_t>(&tensor - read.tensors.data())][0]);
  }
  std::sort(indices.begin(), indices.end());
  return indices;
}

Planes planes_of(const codec::ExponentCodec* codec) {
  return codec == nullptr ? Planes::kTiled : codec->name() == "none" ? Planes::kNone : Planes::kFlat;
}

// What is rounded must be words.
void check_words(const SourceWeights& source) {
  for (const TensorInfo& tensor : source.tensors.tensors)
    if (tensor.format != nullptr && !tensor.format->words)
      throw Error(ErrorKind::kUnsupported, "a model with matrices in blocks cannot be stored in slices")
          .in(fmt::format("{}, tensor \"{}\"", source.directory.path, tensor.name))
          .expected("words of BF16, F16 or F32")
          .found(tensor.format->name)
          .fix("leave " + Setting::kSlices + " out");
}

// A codec that would compress nothing of a model with matrices in formats is none.
Coding choose_coding(const PackJob& job, const PackPlan& plan) {
  const PackOptions& options = job.options;
  if (options.slices) check_words(job.source);
  Coding coding{planes_of(job.codec.get()),     options.chunks, options.least_split_dense,
                options.keep_columns,           options.slices, options.dense,
                exact_tensors(job.source, plan)};
  bool formats = false, split = false;
  for (const PackUnit& unit : job.units)
    for (const UnitPiece& piece : unit.pieces) {
      formats |= piece.format != nullptr;
      split |= encoding_of(coding_of(job.source.weights, unit, piece, coding)).runs == Runs::kExponents;
    }
  if (formats && !split) coding.planes = Planes::kNone;
  return coding;
}

CodecChoice codec_choice(const PackJob& job) {
  CodecChoice choice;
  if (job.coding.planes == Planes::kNone) return choice;
  choice.name = job.options.codec;
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
  for (const SourceFile& file : job.source.directory.files) {
    StoredSource stored;
    stored.path = file.relative;
    stored.size = file.size;
    manifest.sources.push_back(stored);
    job.source_bytes += file.size;
  }
  for (const WeightFile& file : job.source.weights.files) {
    const SourceFile* found = job.source.directory.find(file.relative);
    if (found == nullptr || found->size != file.size) {
      throw Error(ErrorKind::kInvalid, "the source changes while it is packed")
          .in(job.source_path(file.relative))
          .expected(fmt::format("{} bytes, as its header was read", file.size))
          .found(found == nullptr ? "no file any more" : fmt::format("{} bytes", found->size))
          .fix("pack it again once nothing writes to it");
    }
    job.source_of_file.push_back(static_cast<std::size_t>(found - job.source.directory.files.data()));
    StoredSource& stored = manifest.sources[job.source_of_file.back()];
    stored.weights = true;
    stored.gguf = job.source.gguf;
  }
  for (const TensorPlace& place : job.source.weights.places)
    manifest.places.push_back({static_cast<std::uint32_t>(job.source_of_file[place.file]), place.offset});
}

// A store keeps these bytes beside its manifest, for readers to take at once.
void check_rest(const PackJob& job) {
  for (std::size_t i = 0; i < job.manifest.sources.size(); ++i) {
    if (!job.manifest.sources[i].gguf) continue;
    Bytes bytes = 0;
    for (const Region& rest : rest_of(job.manifest, i)) bytes += rest.length;
    if (bytes <= kMaxRestBytes) continue;
    throw Error(ErrorKind::kUnsupported, "much of the file belongs to no tensor")
        .in(job.source_path(job.manifest.sources[i].path))
        .expected(fmt::format("at most {} bytes", kMaxRestBytes))
        .found(fmt::format("{}", bytes))
        .fix("run the file as it is");
  }
}

}  // namespace

PackJob::PackJob(const std::string& path, const PackPlan& plan, const PackOptions& pack_options)
    : options(pack_options),
      codec(make_codec(options)),
      source(read_source(path, options.exclude)),
      units(make_units(source, plan, source.directory.path)),
      coding(choose_coding(*this, plan)),
      file_starts(file_positions(source.weights)) {
  manifest.architecture = plan.architecture;
  manifest.codec = codec_choice(*this);
  manifest.slices = options.slices;
  manifest.tensors = source.weights.tensors;
  manifest.empty_directories = source.directory.empty_directories;
  list_sources(*this);
  check_rest(*this);
  identity.source = &source.directory;
  identity.options = options_text(options, manifest.codec);
  identity.plan = hex64(fingerprint(source.weights, units, plan.architecture));
  for (const StoredSource& stored : manifest.sources) identity.weights.push_back(stored.weights);
}

PieceEntry PackJob::coding_of(const PackUnit& unit, const UnitPiece& piece) const {
  return store::coding_of(source.weights, unit, piece, coding);
}

Bytes PackJob::unit_bytes(const PackUnit& unit) const {
  Bytes bytes = 0;
  for (const UnitPiece& piece : unit.pieces)
    for (const TensorRange& range : piece.ranges())
      bytes += source.weights.tensors[range.tensor].bytes_of(range.count);
  return bytes;
}

void check_source_unchanged(const PackJob& job, const std::string& partial) {
  const SourceDirectory now = list_again(job.source, job.options.exclude);
  for (const SourceFile& file : job.source.directory.files) {
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
