mod a;
mod b;
mod d;
