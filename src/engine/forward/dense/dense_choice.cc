#include "engine/forward/dense/dense_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/duration.h"
#include "base/error.h"
#include "base/setting.h"

namespace sluice::engine {

DenseChoice asked_dense_view(DenseView view, Bytes either_way, const std::string& path,
                             const std::string& codec) {
  if (view == DenseView::kPacked && either_way == 0) {
    const bool native = codec == "native";
    throw Error(ErrorKind::kUsage,
                Setting::kDense + " packed: no dense matrix of this model can be kept packed")
        .in(path)
        .expected("BF16 matrices in a store of codec native")
        .found(native ? "none that takes part in products and is stored so"
                      : "weights stored with codec " + codec)
        .fix(native ? "leave " + Setting::kDense + " out"
                    : "leave " + Setting::kDense + " out, or pack the model: sluice pack " +
                          flag(Setting::kCodec) + " native");
  }
  return {view, "asked for"};
}

DenseChoice choose_dense_view(const DenseQuestion& question, const Profile* profile) {
  if (question.either_way == 0)
    return {DenseView::kWords, "none of them is packed, so each is kept in the format in which it is stored"};
  const Bytes saved = question.words - std::min(question.words, question.packed);
  const std::string memory = fmt::format("takes {} less", format_bytes(saved));
  if (!question.words_fit) return {DenseView::kPacked, memory + ", and words would not fit"};
  if (profile == nullptr || !profile->p_packed || profile->model.full == 0) {
    if (!question.fast_packed)
      return {DenseView::kWords,
              "packed " + memory +
                  ", but with this instruction set words are multiplied faster, unless a profile "
                  "says otherwise"};
    return {DenseView::kPacked, memory + "; what it costs is not measured"};
  }

  const double slower = (profile->p_packed->median - profile->p.median) *
                        static_cast<double>(question.either_way) / static_cast<double>(profile->model.full);
  if (slower <= 0) return {DenseView::kPacked, memory + ", and is no slower"};
  const ProfiledModel& model = profile->model;
  const double miss = model.tensors * (profile->u.median + model.chunks * profile->v.median);
  const auto more =
      static_cast<double>(question.experts_beside_packed -
                          std::min(question.experts_beside_packed, question.experts_beside_words));
  // A token uses top_k of a layer's experts: the share of the experts that fit beside the dense weights needs
  // no read.
  const double faster = model.experts == 0 ? 0 : more / model.experts * model.top_k * miss;
  const std::string times = fmt::format("{} a token longer to compute, {} less to read",
                                        format_duration(slower), format_duration(faster));
  return {faster >= slower ? DenseView::kPacked : DenseView::kWords, "packed " + memory + ": " + times};
}

}  // namespace sluice::engine
