// SPDX-License-Identifier: Apache-2.0
// Boost.MPI: strings gathered through serialization, and a reduction.
#include <boost/mpi.hpp>
#include <boost/serialization/string.hpp>
#include <boost/serialization/vector.hpp>
#include <iostream>
int main(int argc, char **argv)
{
    boost::mpi::environment env(argc, argv);
    boost::mpi::communicator world;
    std::vector<std::string> all;
    gather(world, "rank " + std::to_string(world.rank()), all, 0);
    int sum = all_reduce(world, world.rank() + 1, std::plus<int>());
    if (world.rank() == 0) std::cout << all.back() << " of " << world.size() << ", sum " << sum << "\n";
}
