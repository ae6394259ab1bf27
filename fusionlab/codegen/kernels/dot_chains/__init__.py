"""A dot chain: batched contractions of small matrices and what lies between them, as work on one batch element.

Every axis of every value of a set of ops belongs to a class: an op that maps an axis to an axis joins their classes
(``c = dot_general a, b`` joins a's batch axes with b's and c's, its contracted axes with b's, its free axes with c's).
The classes of a chain are

- *grid*: batch axes of its contractions, which nothing sums, contracts or slices: an instance of the kernel each;
- *stream*: at most one, along which values are sliced, padded, concatenated or summed, as the directions of a forward
  Laplacian: an instance runs through it in a loop;
- *tile*: the others. A value has at most two of them: a matrix in registers.

An axis of the stream class begins at a coordinate of it: ``slice %x [2:32]`` at 2. Where the coordinates of all values
begin and end cuts the class into intervals; on one of them an op is one *part*, of matrices. Intervals of one
coordinate are computed as they are, longer ones in loops; what sums over the stream is complete after its loops.

    stream [0, 32):  %s = dot_general %q, %k     rows of 32 x [10, 10]     s[0]; s[1]; for c in 2 ... 31: s[c]
                     %t = slice %s [2:32]                                  t[c] = s[c]
                     %u = reduce add %t * %t over the stream                u = sum of t[c] t[c], in the loop
                     %v = multiply %u, (slice %s [0:1])                     v = u s[0], after the loop
"""
