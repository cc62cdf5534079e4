mod a;
mod c;
mod d;
