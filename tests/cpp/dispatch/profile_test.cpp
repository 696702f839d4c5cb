// A profile notes calls in order, with what each is part of, what it takes and how its arguments look.
#include "umbra/dispatch/profile.h"

#include <gtest/gtest.h>

#include "umbra/umbra.h"

namespace umbra {
namespace {

TEST(Profile, NotesCallsAndRegions) {
  Tensor x = ones({2, 3});
  auto profile = make_counted<Profile>(Profile::Options{.sizes = true, .memory = true});
  {
    EnterMode scope(profile);
    profile->begin("mine");
    Tensor y = x.add(1);
    profile->end();
    y.mul(2);
  }
  profile->stop();
  const std::vector<ProfiledCall>& calls = profile->calls();
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_TRUE(calls[0].name == "mine" && calls[0].region && calls[0].parent == -1);
  EXPECT_TRUE(calls[1].name == "aten::add" && calls[1].parent == 0 && calls[1].bytes == 24);
  EXPECT_EQ(calls[1].sizes[0], "[2, 3]");
  EXPECT_TRUE(calls[2].name == "aten::mul" && calls[2].parent == -1);
  EXPECT_TRUE(calls[0].begin <= calls[1].begin && calls[1].end <= calls[0].end && calls[0].end <= calls[2].begin);
}

TEST(Profile, EndsCallsThatFail) {
  auto profile = make_counted<Profile>(Profile::Options{});
  {
    EnterMode scope(profile);
    EXPECT_THROW(ones({2}).add(ones({3})), Error);
    EXPECT_THROW(profile->end(), Error);
  }
  EXPECT_GT(profile->calls().back().end, 0);
}

}  // namespace
}  // namespace umbra
